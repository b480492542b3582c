"""Sizes that a user gave a job: what was measured before and after such an edit is used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.premise import Premise, PremiseKind
from rightpool.api.variation import SlowStart
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.arrival import with_size_measured
from rightpool.planning.moves.news import at_rest
from rightpool.planning.offers.experience import measured_before
from rightpool.prediction.predictor import Origin
from tests.unit.planning.jobs import FOUR, NOW, POOLS, changed, entry, find, judged, running
from tests.unit.planning.world import A100, World, decide, on_a100, variation

HALF = Placement("a100", 4, 1)
ONE = Placement("a100", 1, 1)


def edited(world: World, rate: float, workload_hash: str = "h1") -> LedgerEntry:
    """The user's edit, carried out; the job does `rate` from then on."""
    world.job = replace(world.job, workload_hash=workload_hash)
    world.cycle(decide(Action.UPDATE, HALF, rate))
    while world.job.state.revision is None or world.job.state.revision.placement != HALF:
        world.settle(1)
    world.rates["a100"] = rate
    world.settle()
    return world.job.state.history[-1]


def test_what_a_size_does_is_measured_after_an_edit() -> None:
    found = edited(on_a100(), 800.0)
    assert (found.action, found.outcome) == (Action.UPDATE, Outcome.CARRIED_OUT)
    assert (found.baseline_throughput, found.realised_throughput) == (1000.0, 800.0)
    assert found.doubt is not None and 0.0 < found.doubt < 0.1
    assert found.realised_cost_per_million == pytest.approx(20.0 / 3600 / 800.0 * 1e6)


def test_another_program_says_nothing_of_the_size() -> None:
    found = edited(on_a100(), 800.0, "h2")
    assert found.baseline_throughput == 1000.0, "the metric of regressions compares with it"
    assert (found.realised_throughput, found.doubt) == (None, None)


def resized(windows: int, **fields: object) -> Job:
    edit = entry(Outcome.CARRIED_OUT, NOW - 900.0, action=Action.UPDATE, source=ONE, target=FOUR, doubt=0.05)
    edit = replace(edit, baseline_throughput=300.0, **fields)  # type: ignore[arg-type]
    return running(rate=1000.0, history=(edit,), variation=variation(1, 1000.0, NOW, windows=windows))


def test_one_window_may_be_an_evaluation() -> None:
    assert with_size_measured(job := resized(2)) is job
    assert with_size_measured(resized(3)).state.history[-1].realised_throughput == 1000.0


def test_a_job_whose_size_is_to_be_measured_does_not_rest() -> None:
    assert not at_rest(resized(2)), "one window more takes it a step further"
    assert at_rest(with_size_measured(resized(3)))


def test_a_slow_start_says_nothing_of_the_size() -> None:
    def started(*rates: float) -> Job:
        job = resized(3)
        known, length = variation(1, 1000.0, NOW), job.spec.profiling.window.total_seconds()
        known = replace(known, recent=rates, slow_start=SlowStart(4 * length, 600.0, 0))
        return changed(job, variation=known)

    assert with_size_measured(job := started(*[500.0] * 4, 1000.0, 1000.0)) is job
    found = with_size_measured(started(*[500.0] * 4, 1000.0, 1000.0, 1000.0))
    assert found.state.history[-1].realised_throughput == 1000.0


def test_what_was_given_up_in_between_changes_nothing_and_what_moved_does() -> None:
    job = resized(3)
    held = entry(Outcome.HELD, NOW - 60.0, source=FOUR)
    after = with_size_measured(changed(job, history=(*job.state.history, held)))
    assert after.state.history[0].realised_throughput == 1000.0 and after.state.history[1] == held
    failed = replace(held, outcome=Outcome.FAILED)
    moved = changed(job, history=(*job.state.history, failed))
    assert with_size_measured(moved) is moved


def test_sizes_before_an_edit_of_the_size_are_used() -> None:
    job = with_size_measured(resized(3))
    known = measured_before(job, NOW, POOLS)
    assert known[ONE].ratio == pytest.approx(0.3)
    alone = find(judged(job), "a100", 1)
    assert alone.origin is Origin.MEASURED_BEFORE
    assert alone.throughput is not None and alone.throughput.median == pytest.approx(300.0, rel=0.05)
    two = find(judged(job), "a100", 2).throughput
    assert two is not None and Premise(PremiseKind.SIZES_SEEN, number=2.0) in two.basis


def test_moves_before_an_edit_of_the_size_are_used_and_before_one_of_the_program_are_not() -> None:
    move = entry(
        Outcome.VERIFIED,
        NOW - 3600.0,
        source=Placement("a10g", 1, 1),
        target=ONE,
        baseline_throughput=100.0,
        realised_throughput=300.0,
        doubt=0.02,
    )
    (edit,) = with_size_measured(resized(3)).state.history
    sizes = running(rate=1000.0, history=(move, edit))
    assert measured_before(sizes, NOW, POOLS)[move.source].ratio == pytest.approx(0.1)
    for other in (replace(edit, realised_throughput=None), replace(edit, realised_throughput=None, doubt=None)):
        assert move.source not in measured_before(running(rate=1000.0, history=(move, other)), NOW, POOLS)


def test_an_edit_where_nothing_was_measured_is_carried_out_all_the_same() -> None:
    world = on_a100()
    del world.rates["a100"]
    world.cycle(decide(Action.UPDATE, HALF, 800.0))
    world.settle()
    found = world.job.state.history[-1]
    assert (found.outcome, found.baseline_throughput, found.doubt) == (Outcome.CARRIED_OUT, None, None)
    assert A100 not in measured_before(world.job, world.now, POOLS)
