"""Jobs whose throughput is in steps a second: what is decided, what compares, and what begins anew."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.interruption import Interruption
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.progress import JobProgress
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.books.accounting import accounted, departed
from rightpool.planning.books.counterfactual import Level, counterfactual_of_move, speed
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.experience import measured_before
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.work.progress import progress_of
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.steadiness import counted, pace
from rightpool.profiles.track import Track
from rightpool.reporting.candidate_texts import measured, predicted, verdict_text
from tests.unit.planning.jobs import (
    FOUR,
    NOW,
    POOLS,
    changed,
    decision_and_text,
    entry,
    in_steps,
    judged,
    running,
    spec,
)
from tests.unit.planning.test_counterfactual import there
from tests.unit.planning.world import A10G, A100, World, candidate, decide
from tests.unit.reporting.test_conditions import condition_of as condition

GLOBAL = {"minChips": 1, "maxChips": 8, "batch": "Global"}
PER_CHIP = {"minChips": 1, "maxChips": 8, "batch": "PerChip"}


def outcome(assessment: Assessment) -> tuple[Any, ...]:
    """What is decided and why, without the words."""
    reasons = [
        (found.placement, None if found.rejection is None else found.rejection.reason)
        for found in assessment.candidates
    ]
    return assessment.decision.action, assessment.decision.reason, assessment.decision.target, reasons


@given(
    st.floats(0.01, 1e6),
    st.sampled_from((GLOBAL, {})),
    st.sampled_from(("MinimizeCost", "MinimizeTime", "Balanced")),
    st.floats(0.0, 0.9),
)
def test_of_one_batch_steps_decide_as_samples_do(
    rate: float, elasticity: dict[str, Any], objective: str, exposed: float
) -> None:
    made = spec(elasticity=elasticity, targets={"objective": objective})
    job = running(rate=rate, made=made, ratios={"exposed_communication": exposed})
    assert outcome(judged(in_steps(job))) == outcome(judged(job))


@given(st.floats(0.01, 1e6), st.sampled_from((1, 2, 4, 8)), st.floats(0.0, 0.9))
def test_sizes_with_other_batches_do_not_compare(rate: float, chips: int, exposed: float) -> None:
    made = spec(elasticity=PER_CHIP)
    shares = {"exposed_communication": exposed} if chips > 1 else {}
    found = judged(in_steps(running(Placement("a100", chips, 1), rate=rate, made=made, ratios=shares)))
    assert found.candidates
    for one in found.candidates:
        if one.placement.chips != chips:
            assert not one.eligible and (one.throughput, one.cost_per_million, one.saving) == (None, None, None)
        else:
            assert one.rejection is None or one.rejection.reason is not RejectionReason.STEPS_DIFFER
    target = found.decision.target
    assert target is None or target.chips == chips


def test_the_reason_is_typed_and_says_what_to_do() -> None:
    found = judged(in_steps(running(made=spec(elasticity=PER_CHIP))))
    (other,) = (one for one in found.candidates if one.placement == Placement("a100", 2, 1))
    assert other.rejection is not None and other.rejection.reason is RejectionReason.STEPS_DIFFER
    assert "a step on 2 chips" in verdict_text(other) and "spec.progress.samplesPerStep" in verdict_text(other)
    declared = spec(elasticity=PER_CHIP, progress={"samplesPerStep": 32})
    assert judged(running(made=declared)).decision.action is Action.RESIZE, "with samples the size is changed"


def test_texts_name_the_unit() -> None:
    found = judged(in_steps(running(made=spec(elasticity=GLOBAL))))
    assert found.current is not None and found.decision.candidate is not None
    assert "1000 steps/s for $4.44 per million steps" in measured(found.current)
    assert "steps/s for $" in predicted(found.decision.candidate) and "per million steps" in decision_and_text(found)[1]
    assert "samples" not in decision_and_text(found)[1]


def test_a_size_that_is_not_allowed_any_more_is_left_although_nothing_compares() -> None:
    made = spec(elasticity={"minChips": 1, "maxChips": 2, "batch": "PerChip"})
    found = judged(in_steps(running(made=made)))
    assert found.decision.target is not None and found.decision.target.chips <= 2


def test_a_move_between_other_batches_is_no_experience() -> None:
    one = Placement("a100", 1, 1)
    left = entry(
        Outcome.VERIFIED, NOW - 3600.0, target=one, source=FOUR, baseline_throughput=4.0, realised_throughput=3.0
    )
    here = running(one, made=spec(elasticity=PER_CHIP), history=(left,))
    assert FOUR in measured_before(here, NOW, POOLS)
    steps = changed(here, history=(replace(left, unit=WorkUnit.STEPS),))
    assert FOUR not in measured_before(steps, NOW, POOLS)
    same = replace(steps, spec=spec(elasticity=GLOBAL))
    assert FOUR in measured_before(same, NOW, POOLS)


@pytest.mark.parametrize(
    "sections", [{"progress": {"totalSamples": 10**6}}, {"targets": {"maxCostPerMillionSamples": "100"}}]
)
def test_steps_are_not_measured_against_samples_that_an_edit_declares(sections: dict[str, Any]) -> None:
    """The edit came after the last reading."""
    job = in_steps(running(made=spec(elasticity=GLOBAL, **sections)))
    found = judged(job)
    assert (found.decision.action, found.decision.reason) == (Action.HOLD, Reason.PARTIAL_TELEMETRY)
    assert "not how many samples they take" in condition(ConditionType.PROFILED, job).message


# --- a move ----------------------------------------------------------------------------------------------------------


def moved(there: WorkUnit, here: WorkUnit = WorkUnit.STEPS, batch: str = "PerChip") -> World:
    """A move to the A10G pool, and a full verification."""
    world = World.fresh(elasticity={"minChips": 8, "maxChips": 16, "batch": batch})
    world.rates, world.units = {"a100": 4.0, "a10g": 3.6}, {"a100": here, "a10g": there}
    world.placed(A100, 4.0)
    assessment = decide(Action.MOVE, A10G, 3.6, candidate(A100, 4.0, 0.02, here))
    assessment.decision = replace(assessment.decision, candidate=candidate(A10G, 3.6, 0.1, here))
    world.cycle(assessment)
    assert world.job.state.migration is not None and world.job.state.migration.unit is here
    return world


def test_a_move_is_verified_in_steps() -> None:
    world = moved(WorkUnit.STEPS)
    world.settle()
    last = world.job.state.history[-1]
    assert (last.outcome, last.unit) == (Outcome.VERIFIED, WorkUnit.STEPS)
    assert (last.baseline_throughput, last.realised_throughput) == (4.0, 3.6)
    assert "measured 3.6 steps/s" in last.message and "per million steps" in last.message
    assert world.job.state.account.saving_per_hour > 0.0
    there = world.job.state.account.counterfactual
    assert there is not None and there.unit is WorkUnit.STEPS


@pytest.mark.parametrize(("here", "there"), [(WorkUnit.STEPS, WorkUnit.SAMPLES), (WorkUnit.SAMPLES, WorkUnit.STEPS)])
def test_what_was_promised_in_one_unit_is_not_judged_in_another(here: WorkUnit, there: WorkUnit) -> None:
    world = moved(there, here)
    world.settle()
    migration = world.job.state.migration
    assert migration is not None and migration.phase is Phase.WARMING_UP, "it waits for what compares"
    for _ in range(200):
        world.live(60.0)
        world.cycle()
    last = world.job.state.history[-1]
    assert (last.outcome, last.realised_throughput) == (Outcome.FAILED, None)
    assert f"no throughput in {here.plural}/s, as before the move" in last.message
    assert world.job.state.account.saving_per_hour == 0.0


def test_a_unit_that_changes_while_a_move_waits_takes_its_promise_away() -> None:
    world = moved(WorkUnit.SAMPLES)
    world.rates, world.units = {"a100": 128.0, "a10g": 120.0}, {}
    world.settle()
    last = world.job.state.history[-1]
    assert (last.unit, last.predicted_throughput) == (WorkUnit.SAMPLES, None)
    assert (last.baseline_throughput, last.realised_throughput) == (128.0, 120.0)


def test_a_move_to_another_batch_promises_and_proves_nothing() -> None:
    """The user does not allow the size any more."""
    world = World.fresh(elasticity={"minChips": 8, "maxChips": 16, "batch": "PerChip"})
    world.rates, world.units = {"a100": 4.0, "a10g": 3.6}, {"a100": WorkUnit.STEPS, "a10g": WorkUnit.STEPS}
    world.placed(A100, 4.0)
    larger = Placement("a10g", 16, 2)
    here = replace(candidate(A100, 4.0), throughput=None, cost_per_million=None)
    assessment = decide(Action.MOVE, larger, 3.6, here)
    unknown = replace(candidate(larger, 3.6), throughput=None, cost_per_million=None)
    assessment.decision = replace(assessment.decision, candidate=unknown)
    world.cycle(assessment)
    world.settle()
    last = world.job.state.history[-1]
    assert (last.outcome, last.unit, last.target) == (Outcome.VERIFIED, WorkUnit.STEPS, larger)
    assert (last.baseline_throughput, last.predicted_throughput, last.realised_throughput) == (None, None, 3.6)
    assert world.job.state.account.saving_per_hour == 0.0


# --- what is kept ----------------------------------------------------------------------------------------------------


def track(unit: WorkUnit, *counts: float) -> Track:
    """A track that read these counts, ten seconds apart."""
    made = Track(unit)
    of = Field.SAMPLES if unit is WorkUnit.SAMPLES else Field.STEPS
    for number, count in enumerate(counts):
        made.add(Sample(NOW + 10.0 * number, {of: count}), 1)
    return made


def test_progress_in_steps_counts_steps() -> None:
    job = changed(in_steps(running(rate=2.0)), track=track(WorkUnit.STEPS, 100.0, 120.0))
    done = progress_of(job, NOW + 10.0)
    assert (done.unit, done.done, done.rate) == (WorkUnit.STEPS, 120, 2.0)


def test_progress_begins_anew_in_another_unit_and_useful_time_goes_on() -> None:
    before = JobProgress(
        unit=WorkUnit.STEPS,
        done=100,
        since=NOW - 60.0,
        revision=1,
        counter=100,
        rate=2.0,
        useful_seconds=50.0,
        rated=100,
    )
    job = changed(running(rate=64.0), progress=before, track=track(WorkUnit.SAMPLES, 6400.0, 7040.0))
    done = progress_of(job, NOW + 10.0)
    assert (done.unit, done.done) == (WorkUnit.SAMPLES, 7040)
    assert done.useful_seconds == pytest.approx(50.0 + 640 / 64.0 * 4), "what was counted before is not counted twice"


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 10**4))
def test_steps_become_samples_by_what_the_user_says(done: int, more: int, per_step: int) -> None:
    before = JobProgress(unit=WorkUnit.STEPS, done=done, since=NOW - 60.0, revision=1, counter=done, rated=done)
    made = spec(progress={"samplesPerStep": per_step, "totalSamples": 10**15})
    job = changed(
        running(made=made),
        progress=before,
        track=track(WorkUnit.SAMPLES, float(done * per_step), float((done + more) * per_step)),
    )
    assert progress_of(job, NOW + 10.0).done == (done + more) * per_step


def test_a_rate_of_another_unit_says_nothing_of_what_was_saved() -> None:
    here = Level(1000.0, NOW)
    assert speed(there(), here, None) is not None
    assert speed(there(), replace(here, unit=WorkUnit.STEPS), None) is None


@pytest.mark.parametrize(("unit", "over"), [(WorkUnit.SAMPLES, True), (WorkUnit.STEPS, False)])
def test_what_is_to_be_repeated_counts_in_its_own_unit(unit: WorkUnit, over: bool) -> None:
    job = running(rate=2.0, track=track(WorkUnit.STEPS, 5.0, 25.0))
    assert job.state.revision is not None
    since = replace(job.state.revision, since=NOW - 60.0)
    waiting = changed(job, revision=since, interruption=Interruption("d-1", NOW - 100.0, repeats=1000, unit=unit))
    assert (accounted(waiting, None, PlacementPolicySpec(), NOW + 20.0).state.interruption is None) is over


def test_what_a_move_in_steps_repeats_is_in_steps() -> None:
    world = moved(WorkUnit.STEPS)
    while world.job.state.migration is not None and world.job.state.migration.phase is not Phase.DRAINING:
        world.live()
        world.cycle()
    job, migration = world.observed(), world.job.state.migration
    assert migration is not None
    left = departed(changed(job, track=track(WorkUnit.STEPS, 5.0, 25.0)), migration, world.now)
    assert left.state.interruption is not None and left.state.interruption.unit is WorkUnit.STEPS


def test_windows_of_another_unit_are_no_pace() -> None:
    before = counted(counted(None, 1, 64.0, NOW, 300.0), 1, 66.0, NOW + 300.0, 300.0)
    assert pace(before, 1) is not None and pace(before, 1, WorkUnit.STEPS) is None
    after = counted(before, 1, 2.0, NOW + 600.0, 300.0, WorkUnit.STEPS)
    assert (after.unit, after.recent) == (WorkUnit.STEPS, (2.0,))
    assert after.spans == before.spans, "how the job varies is a matter of ratios"


@pytest.mark.parametrize(("batch", "compared"), [("PerChip", False), ("Global", True)])
def test_a_baseline_of_another_batch_is_none(batch: str, compared: bool) -> None:
    world = moved(WorkUnit.STEPS, batch=batch)
    migration = world.job.state.migration
    assert migration is not None
    larger = replace(migration, target=replace(migration.target, placement=Placement("a10g", 16, 2)))
    made = counterfactual_of_move(world.job, Level(4.0, NOW, unit=WorkUnit.STEPS), larger)
    assert made is not None and (made.baseline is not None) is compared
