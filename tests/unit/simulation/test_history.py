"""A history that is played again: where it was, and where the operator would have put it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import pytest
import yaml

from benchmarks.fleet.made_month import BEGAN, POOLS, made_month
from rightpool.api.ended_job import EndedJob, Stay
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.cli.decider import Decider
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.simulation.backtest import backtest
from rightpool.simulation.fleet_figures import FigureRange, PlayedFigures, as_it_was, as_played
from rightpool.simulation.history import History, Scenario, history_of

HOUR = 3600.0
MODEL = StepModelPredictor()


@cache
def pools() -> Mapping[str, Pool]:
    found = {}
    for entry in yaml.safe_load(POOLS):
        chip, name, chips, node = (
            load_catalog().get(entry["accelerator"]),
            entry["name"],
            entry["chips"],
            entry["chipsPerNode"],
        )
        links = chip.intra_link, chip.inter_link
        found[name] = Pool(name, chip, node, "nvidia.com/gpu", {}, *links, Price(entry["price"]), chips, chips)
    return found


def record(
    name: str, arrived: float, hours: float, chips: int = 8, rate: float | None = 100.0, **more: object
) -> EndedJob:
    """On the A100s, alone on what it needs."""
    at = BEGAN + arrived * HOUR
    stay = Stay(Placement("a100", chips, 1), at, at + hours * HOUR, None, rate, 120.0)
    pinned = {"placement": {"pools": {"allow": ["a100"]}}}
    work = None if rate is None else round(rate * (hours * HOUR - 120.0))
    made = EndedJob(f"team/{name}", at, (stay,), uid=name, work=work, restart=120.0, spec=pinned)
    return replace(made, **more)  # type: ignore[arg-type]


def of(records: Sequence[EndedJob]) -> History:
    return history_of(records, pools(), load_catalog())


def played(records: Sequence[EndedJob], chips: int = 32) -> PlayedFigures:
    history = of(records)
    with_chips = {**pools(), "a100": replace(pools()["a100"], total=chips, free=chips)}
    scenario = Scenario(with_chips, PlacementPolicySpec())
    return as_played(history.played(scenario, MODEL, lambda _: 0.0, Decider), history, with_chips)


def test_what_had_room_ends_when_it_did_and_costs_what_it_did() -> None:
    records = [record("one", 0.0, 5.0), record("two", 1.0, 3.0), record("three", 20.0, 1.0)]
    was, now = as_it_was(of(records), pools()), played(records)
    assert (now.jobs, now.left) == (3, 0)
    assert now.figures["dollars"] == pytest.approx(was.figures["dollars"], rel=0.01)
    assert now.figures["completionHoursMean"] == pytest.approx(was.figures["completionHoursMean"], abs=0.03)
    assert now.chip_hours["a100"] == pytest.approx(was.chip_hours["a100"], rel=0.01)


def test_with_fewer_chips_jobs_wait_for_each_other() -> None:
    records = [record("one", 0.0, 5.0), record("two", 1.0, 3.0)]
    now = played(records, chips=8)
    assert now.figures["waitHoursLongest"] == pytest.approx(4.0, abs=0.1)
    assert now.figures["completionHoursMean"] == pytest.approx((5.0 + 7.0) / 2, abs=0.1)


def test_what_fits_nowhere_is_counted_and_does_not_stop_the_run() -> None:
    now = played([record("one", 0.0, 2.0), record("big", 0.5, 2.0, chips=8)], chips=0)
    assert (now.jobs, now.left) == (0, 2)


def test_a_job_of_which_nothing_was_measured_takes_as_long_as_it_did() -> None:
    now = played([record("one", 0.0, 5.0, rate=None)])
    assert now.figures["completionHoursMean"] == pytest.approx(5.0, abs=0.05)


def test_a_job_of_a_name_that_ran_twice_is_two_jobs() -> None:
    assert of([record("one", 0.0, 1.0), record("one", 3.0, 1.0)]).names == ("team/one", "team/one~2")


def test_what_cant_be_played_is_left_out_with_its_reason() -> None:
    gone = replace(
        record("gone", 0.0, 1.0), stays=(replace(record("x", 0.0, 1.0).stays[0], placement=Placement("old", 8, 1)),)
    )
    odd = replace(record("odd", 0.0, 1.0), spec={"targets": {"objective": "Fame"}})
    history = of([gone, odd, record("fine", 0.0, 1.0)])
    assert [one.job for one in history.records] == ["team/fine"]
    assert {one.job: one.why.split(":")[0] for one in history.left_out} == {
        "team/gone": "there is no pool old",
        "team/odd": "spec.targets.objective",
    }


def test_a_pool_that_is_gone_is_known_by_its_chip() -> None:
    stay = replace(record("x", 0.0, 1.0).stays[0], placement=Placement("old", 8, 1), chip="V100-SXM2-16GB")
    history = of([replace(record("gone", 0.0, 1.0), stays=(stay,), spec={})])
    (work,) = history.works(MODEL, lambda _: 0.0)
    assert work.rates.true(Placement("a100", 8, 1)) > 100.0


def test_the_backtest_of_the_made_month_says_by_how_much_rates_are_off() -> None:
    month = made_month()
    found = backtest(of(month), MODEL)
    assert found.jobs == 300
    assert found.moved > 10
    assert found.holds
    assert 0.02 < found.nine_in_ten < 0.10, "its rates were measured with a doubt of 3%"
    slow = [replace(one, work=2 * (one.work or 0)) for one in month]
    assert not backtest(of(slow), MODEL).holds


def test_draws_move_rates_where_they_are_predicted_and_nowhere_else() -> None:
    history = of([record("one", 0.0, 5.0)])
    usual, other = (history.works(MODEL, lambda _, z=z: z)[0].rates for z in (0.0, 1.0))  # type: ignore[misc]
    home, there = Placement("a100", 8, 1), Placement("l4", 8, 1)
    assert usual.true(home) == other.true(home) == 100.0
    assert usual.true(there) < other.true(there) < 3.0 * usual.true(there)


def test_an_interval_of_one_run_is_none_and_one_over_zero_is_not_certain() -> None:
    assert FigureRange.of([3.0]) == FigureRange(3.0, 3.0, 3.0)
    assert not FigureRange.of([1.0, -1.0, 0.5]).certain
    assert FigureRange.of([10.0, 11.0, 10.5]).certain
