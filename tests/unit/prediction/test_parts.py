"""The parts of a prediction by themselves: shares of a step, the rule between chips, estimates, cost."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.hardware.accelerator import Accelerator
from rightpool.prediction.cost import cost_per_million, energy_per_sample, probability_cheaper, restart_cost
from rightpool.prediction.decompose import decompose, scaling_loss
from rightpool.prediction.estimate import Estimate
from rightpool.prediction.layout import Layout
from rightpool.prediction.transfer import nominal_rate, static_rule
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from tests.unit.prediction.fixtures import A10G_CHIP, A100_CHIP, TPU_CHIP, chip, profile, without
from tests.unit.prediction.test_predict import PROFILES

CHIPS = st.sampled_from([A100_CHIP, A10G_CHIP, TPU_CHIP])


@given(made=PROFILES)
def test_shares_sum_to_one(made: Profile) -> None:
    shares = decompose(made, Layout(made.chips, 1))
    assert shares.host + shares.comm + shares.chip == pytest.approx(1.0)
    assert min(shares.host, shares.comm, shares.chip, shares.input) >= 0.0
    assert shares.input <= shares.host + 1e-12
    assert 0.0 <= shares.compute_weight <= 1.0


def test_collectives_on_a_busy_chip_are_not_counted_twice() -> None:
    shares = decompose(profile(4, 1.0, chip_busy=0.995, exposed_communication=0.255), Layout(4, 1))
    assert (shares.host, shares.comm, shares.chip) == pytest.approx((0.005, 0.255, 0.74))


def test_unknown_parts_are_doubtful_and_said_to_be() -> None:
    made = profile(4, 1.0, chip_busy=0.9, exposed_communication=0.1, matrix_active=0.4, memory_bandwidth=0.2)
    known = decompose(made, Layout(4, 1))
    assert known.compute_weight == pytest.approx(2 / 3)
    unknown = decompose(without(made, Field.CHIP_BUSY, Field.EXPOSED_COMMUNICATION), Layout(4, 1))
    assert unknown.compute_weight == 0.5
    assert unknown.host > 0.0 and unknown.comm > 0.0
    assert unknown.host_sd > known.host_sd and unknown.comm_sd > known.comm_sd == 0.0
    assert "chip activity unknown" in unknown.basis and "usual communication" in unknown.basis


def test_eight_chips_of_a_node_keep_nine_tenths() -> None:
    loss, sd = scaling_loss(8, 1)
    assert math.exp(-loss) == pytest.approx(0.905)
    assert math.exp(-loss - 1.28 * sd) == pytest.approx(0.74, abs=0.01)
    assert scaling_loss(1, 1) == (0.0, 0.0)
    assert scaling_loss(16, 2)[1] > sd


@given(one=CHIPS, other=CHIPS, weight=st.floats(0.0, 1.0))
def test_going_there_and_back_changes_nothing(one: Accelerator, other: Accelerator, weight: float) -> None:
    there, back = static_rule(one, other, weight, 0.1), static_rule(other, one, weight, 0.1)
    assert there is not None and back is not None
    assert there.log == pytest.approx(-back.log)
    assert there.sd == pytest.approx(back.sd)


def test_twice_the_chip_is_twice_as_fast_with_and_without_power() -> None:
    for watts in (300.0, None):
        one = chip("one", 1e14, 1e12, watts=watts)
        two = chip("two", 2e14, 2e12, watts=None if watts is None else 2 * watts)
        speed = static_rule(one, two, 0.5, 0.25)
        assert speed is not None
        assert math.exp(speed.log) == pytest.approx(2.0)
        rates = [nominal_rate(c, with_power=watts is not None) for c in (one, two)]
        assert rates[0] and rates[1] and rates[1] / rates[0] == pytest.approx(2.0)


def test_half_precision_is_one_class() -> None:
    old = replace(A100_CHIP, key="old", peak_flops={"fp16": 125e12, "fp32": 15e12})
    speed = static_rule(old, A100_CHIP, 0.5, 0.25)
    assert speed is not None
    assert speed.log == pytest.approx(0.4 * math.log(312 / 125))


def test_cost_follows_the_rate() -> None:
    rate = Estimate(1000.0, 0.2, shared=(("window", 0.1),))
    cost = cost_per_million(rate, 3.6)
    assert cost.median == pytest.approx(1.0)
    assert cost.high / cost.median == pytest.approx(rate.median / rate.low)
    assert cost_per_million(rate, 0.0).median == 0.0


def test_probability_of_being_cheaper() -> None:
    here, there = Estimate(100.0, 0.1, shared=(("window", 0.1),)), Estimate(100.0, 0.1, shared=(("window", 0.1),))
    assert probability_cheaper(there, 0.9, here, 1.0) == 1.0
    assert 0.5 < probability_cheaper(there, 0.9, here, 1.0, noise=0.1) < 0.9
    assert probability_cheaper(there, 1.0, here, 1.0, noise=0.1) == pytest.approx(0.5)
    assert probability_cheaper(there, 0.0, here, 1.0) == 1.0
    assert probability_cheaper(there, 0.0, here, 0.0) == 0.0


def test_energy_and_restart() -> None:
    joules = energy_per_sample(Estimate(100.0, 0.0), 4, 250.0)
    assert joules is not None and joules.median == pytest.approx(10.0)
    assert energy_per_sample(Estimate(100.0, 0.0), 4, None) is None
    assert restart_cost(90.0, 40.0) == pytest.approx(1.0)
    assert restart_cost(0.0, 40.0, 3600.0, 2.0) == pytest.approx(2.0)
