"""Numbers in messages."""

import pytest

from rightpool.api.wording import cents, dollars


@pytest.mark.parametrize(
    ("value", "exact", "summed"),
    [
        (8.048, "$8.05", "$8.05"),
        (0.001234, "$0.00123", "$0.00"),
        (-0.5, "-$0.5", "-$0.50"),
        (-12.304, "-$12.30", "-$12.30"),
        (-0.00000001, "-$1e-08", "$0.00"),
        (0.0, "$0", "$0.00"),
    ],
)
def test_amounts(value: float, exact: str, summed: str) -> None:
    assert (dollars(value), cents(value)) == (exact, summed)
