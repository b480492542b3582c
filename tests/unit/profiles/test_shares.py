"""Shares of a step: they sum to 1, and each counter is used only for what it measures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.profiles.sample import Field
from rightpool.profiles.shares import decompose
from tests.unit.profiles.windows import profile


def test_collectives_keep_the_chip_busy() -> None:
    """VGG-16 on 4 H200 over PCIe: 99.5% busy, 25.5% exposed, and the trace shows 73.3% computation."""
    shares = decompose(profile(4, chip_busy=0.99461, exposed_communication=0.255))
    assert shares is not None
    assert shares.chip == pytest.approx(0.7329, abs=0.01)
    assert shares.communication == 0.255
    assert shares.idle == pytest.approx(0.005, abs=0.001)


def test_communication_that_keeps_no_chip_busy() -> None:
    shares = decompose(profile(2, chip_busy=0.3, exposed_communication=0.6))
    assert shares is not None
    assert (shares.communication, shares.chip, shares.idle) == (0.6, 0.0, 0.4)


def test_input_wait_counts_only_while_the_chip_waits_too() -> None:
    shares = decompose(profile(chip_busy=0.9, input_wait=0.5))
    assert shares is not None
    assert shares.input == pytest.approx(0.1)
    assert shares.host == pytest.approx(0.0)


def test_input_that_nobody_watched_is_not_zero() -> None:
    shares = decompose(profile(chip_busy=0.4, saving=0.1))
    assert shares is not None and shares.input is None
    assert (shares.saving, shares.host, shares.idle) == pytest.approx((0.1, 0.5, 0.6))


def test_saves_take_their_time_from_the_host_and_not_from_input() -> None:
    shares = decompose(profile(chip_busy=0.4, input_wait=0.2, saving=0.3))
    assert shares is not None
    assert (shares.input, shares.saving, shares.host) == pytest.approx((0.2, 0.3, 0.1))
    shares = decompose(profile(chip_busy=0.4, input_wait=0.5, saving=0.3))
    assert shares is not None
    assert (shares.input, shares.saving, shares.host) == pytest.approx((0.5, 0.1, 0.0))


def test_one_chip_has_no_communication() -> None:
    shares = decompose(profile(1, chip_busy=0.9))
    assert shares is not None and shares.communication == 0.0


def test_missing_counters_give_no_shares() -> None:
    assert decompose(profile(1)) is None
    assert decompose(profile(4, chip_busy=0.9)) is None
    assert decompose(profile(4, exposed_communication=0.1)) is None
    shares = decompose(profile(1, chip_busy=0.9, matrix_active=0.4))
    assert shares is not None
    assert shares.roofline.matrix is not None and shares.roofline.bandwidth is None
    assert shares.compute is None and shares.bandwidth is None


def test_closeness_is_to_what_the_chip_sustains_while_it_works() -> None:
    shares = decompose(profile(chip_busy=0.5, matrix_active=0.2, memory_bandwidth=0.1))
    assert shares is not None
    assert shares.roofline.matrix == pytest.approx(0.2 / (0.5 * 0.8))
    assert shares.roofline.bandwidth == pytest.approx(0.1 / (0.5 * 0.8))
    assert shares.roofline.nearest == pytest.approx(0.5)
    assert shares.roofline.compute_weight == pytest.approx(2 / 3)


ratio = st.none() | st.floats(-0.5, 1.5)


@given(
    st.integers(1, 8),
    st.fixed_dictionaries(
        dict.fromkeys(
            ("chip_busy", "exposed_communication", "input_wait", "saving", "matrix_active", "memory_bandwidth"), ratio
        )
    ),
)
def test_shares_sum_to_one(chips: int, readings: dict[str, float | None]) -> None:
    known = {name: value for name, value in readings.items() if value is not None}
    shares = decompose(profile(chips, **known))
    if shares is None:
        assert "chip_busy" not in known or (chips > 1 and "exposed_communication" not in known)
        return
    assert (shares.input is None) is ("input_wait" not in known)
    parts = (shares.input or 0.0, shares.saving, shares.host, shares.communication, shares.chip)
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(1.0)
    if shares.compute is not None and shares.bandwidth is not None:
        assert shares.compute + shares.bandwidth == pytest.approx(shares.chip)
        assert shares.compute >= 0 and shares.bandwidth >= 0
    if Field.MATRIX_ACTIVE.name.lower() not in known:
        assert shares.roofline.matrix is None
