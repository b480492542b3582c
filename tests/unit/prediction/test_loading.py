"""What a wait for data says of the loader, and how sure that is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.hardware.catalog import load_catalog
from tests.unit.prediction.fixtures import A100, at, pool, profile
from tests.unit.prediction.test_sizes import after, expected

L4 = pool("l4", load_catalog().get("L4-24GB"))
FASTER = pool("faster", load_catalog().get("H100-SXM5-80GB"))
NAN = math.nan


def moved(wait: float | None, busy: float | None = 0.95) -> Estimate:
    """From an L4 to a chip that does the same work some eight times as fast."""
    return expected(profile(1, 100.0, chip_busy=busy, input_wait=wait), at(L4, 1), at(FASTER, 1))


@pytest.mark.parametrize("wait", [0.001, 0.005, 0.01, 0.02, 0.05])
def test_a_small_wait_may_be_the_tip_of_a_loader_or_nothing(wait: float) -> None:
    with_wait, without = moved(wait, None), moved(0.0, None)
    assert 100.0 < with_wait.median < without.median
    assert with_wait.sd > 0.4
    assert with_wait.high > 0.25 * without.high


def test_the_smallest_wait_changes_next_to_nothing() -> None:
    none, least = moved(0.0), moved(1e-6)
    assert least.median == pytest.approx(none.median, rel=0.01)
    assert least.sd == pytest.approx(none.sd, rel=0.02)


def test_a_long_wait_is_the_loader() -> None:
    starved = moved(0.6, 0.4)
    assert starved.median < 115.0 and starved.sd < 0.2


@given(small=st.floats(0.0, 0.9), more=st.floats(0.0, 0.5))
def test_who_waits_longer_gains_less(small: float, more: float) -> None:
    large = min(small + more, 0.95)
    assert moved(large, None).median <= moved(small, None).median * (1.0 + 1e-9)


def test_a_wait_that_is_no_number_was_not_measured() -> None:
    busy = profile(1, 100.0, chip_busy=0.6)
    for where in (at(FASTER, 1), at(L4, 8)):
        unknown = expected(busy, at(L4, 1), where)
        nothing = expected(profile(1, 100.0, chip_busy=0.6, input_wait=NAN), at(L4, 1), where)
        never = expected(profile(1, 100.0, chip_busy=0.6, input_wait=0.0), at(L4, 1), where)
        assert (nothing.median, nothing.sd) == (unknown.median, unknown.sd)
        assert where[0].chips == 1 or unknown.median < 0.9 * never.median


def test_idle_chips_may_wait_for_data_that_nobody_measured() -> None:
    here, there = at(A100, 1), at(A100, 8)
    unknown, host, data = (
        expected(profile(1, 100.0, chip_busy=0.6, input_wait=wait), here, there) for wait in (None, 0.0, 0.4)
    )
    assert data.median < unknown.median < host.median
    assert unknown.sd > max(host.sd, data.sd)


def test_a_rate_at_another_size_tells_whether_the_loader_keeps_up() -> None:
    here, sizes = Placement("a100", 1, 1), [Placement("a100", count, 1) for count in (4, 8)]
    waits = profile(1, 100.0, chip_busy=0.95, input_wait=0.05)
    (blind,) = after(waits, here, {}, sizes[1])
    (keeps_up,) = after(waits, here, {sizes[0]: 390.0}, sizes[1])
    (falls_behind,) = after(waits, here, {sizes[0]: 140.0}, sizes[1])
    assert falls_behind.median < 250.0 < 600.0 < keeps_up.median
    assert max(falls_behind.sd, keeps_up.sd) < blind.sd
