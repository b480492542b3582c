"""The parts of a prediction by themselves: shares of a step, the rule between chips, estimates, cost."""

import math
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.estimate import Estimate
from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.columns import cumulative_normal, floats
from rightpool.prediction.cost import cost_per_million, probability_above, probability_cheaper
from rightpool.prediction.precision import HALF, UNKNOWN_PRECISION
from rightpool.prediction.step_shares import step_shares
from rightpool.prediction.transfer import Transfer, nominal_rate
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from tests.unit.prediction.fixtures import A10G_CHIP, A100_CHIP, TPU_CHIP, chip, profile, ratio_sd, without
from tests.unit.prediction.test_predict import PROFILES

CHIPS = st.sampled_from([A100_CHIP, A10G_CHIP, TPU_CHIP])


def shares_of(made: Profile, chips: int) -> SimpleNamespace:
    """The shares of one job's step."""
    columns = step_shares([made], np.array([chips]))
    return SimpleNamespace(**{field.name: getattr(columns, field.name)[0] for field in fields(columns)})


def between(one: Accelerator, other: Accelerator, kind: int = UNKNOWN_PRECISION) -> SimpleNamespace:
    """From one chip to the other, of a job of which nothing but its precision is known."""
    tables = Transfer.among([one, other], shipped())
    return SimpleNamespace(log=tables.log[kind, 0, 1], sd=tables.variances[0, kind, 0, 1] ** 0.5)


def cheaper(there: Estimate, price: float, here: Estimate, other_price: float, noise: float = 0.0) -> float:
    """P(there is cheaper than here)."""
    variance = ratio_sd(there, here) ** 2 + noise**2
    numbers = (there.median, price, here.median, other_price, variance)
    return float(probability_cheaper(*(floats([number]) for number in numbers))[0])


@given(made=PROFILES)
def test_shares_sum_to_one(made: Profile) -> None:
    shares = shares_of(made, made.chips)
    assert shares.input + shares.host + shares.work == pytest.approx(1.0)
    assert min(shares.host, shares.input) >= 0.0 < shares.work
    assert np.isnan(shares.exposed) or 0.0 <= shares.exposed < shares.work


def test_collectives_on_a_busy_chip_are_not_counted_twice() -> None:
    shares = shares_of(profile(4, 1.0, chip_busy=0.995, exposed_communication=0.255), 4)
    assert (shares.host, shares.exposed, shares.work) == pytest.approx((0.005, 0.255, 0.995))


def test_what_was_measured_is_said_to_be() -> None:
    made = profile(4, 1.0, chip_busy=0.9, exposed_communication=0.1, compute_active=0.8, memory_bandwidth=0.2)
    known = shares_of(made, 4)
    assert known.busy_known and known.comm_known and known.counted
    unknown = shares_of(without(made, Field.CHIP_BUSY, Field.EXPOSED_COMMUNICATION), 4)
    assert not (unknown.busy_known or unknown.comm_known or unknown.counted)


def test_units_that_wait_on_a_busy_chip_are_latency() -> None:
    small = shares_of(profile(1, 1.0, chip_busy=0.95, compute_active=0.3, memory_bandwidth=0.05), 1)
    large = shares_of(profile(1, 1.0, chip_busy=0.95, compute_active=0.9, memory_bandwidth=0.4), 1)
    assert small.work < 0.4 < 0.9 < large.work


@given(exposed=st.floats(0.0, 0.9))
def test_units_that_wait_for_links_are_no_latency(exposed: float) -> None:
    """The computing part of the step is that of a job whose units hardly wait."""
    active = 0.86 * (1.0 - exposed)
    counted = profile(4, 1.0, chip_busy=1.0, compute_active=active, memory_bandwidth=0.3, exposed_communication=exposed)
    shares = shares_of(counted, 4)
    assert (shares.host, shares.exposed) == pytest.approx((0.0, exposed), abs=1e-9)


@given(one=CHIPS, other=CHIPS, kind=st.sampled_from([HALF, UNKNOWN_PRECISION]))
def test_going_there_and_back_changes_nothing(one: Accelerator, other: Accelerator, kind: int) -> None:
    there, back = between(one, other, kind), between(other, one, kind)
    assert there.log == pytest.approx(-back.log)
    assert there.sd == pytest.approx(back.sd)


def test_twice_the_chip_is_about_twice_as_fast_with_and_without_power() -> None:
    for watts in (300.0, None):
        one = chip("one", 1e14, 1e12, watts=watts)
        two = chip("two", 2e14, 2e12, watts=None if watts is None else 2 * watts)
        assert 1.8 < math.exp(between(one, two).log) < 2.1
        rates = [nominal_rate(c, with_power=watts is not None) for c in (one, two)]
        assert rates[0] and rates[1] and rates[1] / rates[0] == pytest.approx(2.0)


def test_half_precision_is_one_class() -> None:
    old = replace(A100_CHIP, key="old", peak_flops={"fp16": 125e12, "fp32": 15e12})
    assert 0.0 < between(old, A100_CHIP, HALF).log < 0.6 * math.log(312 / 125)


def test_cost_follows_the_rate() -> None:
    rate = Estimate(1000.0, 0.2, shared=(("window", 0.1),))
    cost = cost_per_million(rate, 3.6)
    assert cost.median == pytest.approx(1.0)
    assert cost.high / cost.median == pytest.approx(rate.median / rate.low)
    assert cost_per_million(rate, 0.0).median == 0.0


def test_probability_of_being_cheaper() -> None:
    here, there = Estimate(100.0, 0.1, shared=(("window", 0.1),)), Estimate(100.0, 0.1, shared=(("window", 0.1),))
    assert cheaper(there, 0.9, here, 1.0) == 1.0
    assert 0.5 < cheaper(there, 0.9, here, 1.0, noise=0.1) < 0.9
    assert cheaper(there, 1.0, here, 1.0, noise=0.1) == pytest.approx(0.5)
    assert cheaper(there, 0.0, here, 1.0) == 1.0
    assert cheaper(there, 0.0, here, 0.0) == 0.0


PRICE = st.just(0.0) | st.floats(0.0, 1e6)


@given(there=PRICE, here=PRICE, rate=st.floats(1e-3, 1e9), sd=st.floats(0.0, 3.0))
def test_chips_that_cost_nothing_are_compared_like_others(there: float, here: float, rate: float, sd: float) -> None:
    """A pool may be free: its cost is 0 without doubt, and it is cheaper than whatever costs anything."""
    one, other = Estimate(rate, sd), Estimate(100.0, 0.1)
    cost = cost_per_million(one, there)
    assert 0.0 <= cost.low <= cost.median <= cost.high < math.inf
    probability = cheaper(one, there, other, here)
    assert 0.0 <= probability <= 1.0
    if there == 0.0 or here == 0.0:
        assert probability == (1.0 if there < here else 0.0)


def test_probability_of_being_above() -> None:
    rates, sds = floats([100.0, 100.0, 100.0, 100.0]), floats([0.0, 0.0, 0.1, 0.1])
    assert list(probability_above(rates, sds, floats([99.0, 101.0, 0.0, 100.0]))) == [1.0, 0.0, 1.0, 0.5]


def test_the_normal_distribution() -> None:
    assert cumulative_normal(floats([0.0, 1.2815515655446004, -40.0])).tolist() == pytest.approx([0.5, 0.9, 0.0])
