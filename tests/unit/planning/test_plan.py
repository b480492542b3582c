"""The whole fleet: who comes first, and what is remembered. Any fleet is in test_plan_properties.py."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import Crash, RevisionState
from rightpool.planning.work.outlook import LONGEST_SECONDS
from rightpool.profiles.profile import Reading
from rightpool.profiles.sample import Field, Quality
from rightpool.telemetry.samples import admissible
from tests.unit.planning.jobs import (
    AUTO,
    NOW,
    POOLS,
    changed,
    decision_and_text,
    fleet,
    fresh,
    plan,
    running,
    spec,
)
from tests.unit.prediction.fixtures import A10G, A100, A100_CHIP, pool

FREE = PlacementPolicySpec.model_validate(
    {"defaultAdaptationMode": "Auto", "maxConcurrentMigrations": 1000, "maxMovesPerHour": 1000, "minRunTime": "0s"}
)


def actions(made: Plan) -> dict[str, Action]:
    return {key.name: assessment.decision.action for key, assessment in made.assessments.items()}


def reasons(made: Plan) -> dict[str, Reason]:
    return {key.name: assessment.decision.reason for key, assessment in made.assessments.items()}


# --- who comes first -------------------------------------------------------------------------------------------------


def test_the_oldest_starts_first_and_starts_come_before_moves() -> None:
    little = {"a100": pool("a100", A100_CHIP, 4.0, total=12, free=4)}
    rigid = spec(elasticity={"minChips": 4, "maxChips": 4})
    grow = spec(
        chips=4, targets={"objective": "MinimizeTime"}, elasticity={"minChips": 2, "maxChips": 4, "batch": "PerChip"}
    )
    mover = running(Placement("a100", 2, 1), 100.0, "mover", grow, ratios={"exposed_communication": 0.0})
    jobs = [
        mover,
        fresh("young", rigid, created_at=NOW - 10),
        fresh("old", rigid, created_at=NOW - 20),
    ]
    assert actions(plan(fleet([mover], little, FREE))) == {"mover": Action.RESIZE}
    made = plan(fleet(jobs, little, FREE))
    assert actions(made) == {"old": Action.START, "young": Action.HOLD, "mover": Action.HOLD}
    assert reasons(made)["young"] is reasons(made)["mover"] is Reason.WAITING_FOR_CAPACITY


def test_a_job_that_can_not_be_judged_keeps_no_other_from_being_planned() -> None:
    """What it is that breaks on it is a defect, which is told where the job is looked at."""
    job = running(name="broken")
    assert job.observed.profile is not None
    readings = {**job.observed.profile.readings, Field.SAMPLES_PER_SECOND: Reading("a lot", 1.0, 1.0, Quality.MEASURED)}  # type: ignore[arg-type]
    broken = changed(job, profile=replace(job.observed.profile, readings=readings))
    snapshot = fleet([broken, running(name="other")])
    first = plan(snapshot)
    for made in (first, plan(snapshot, first)):
        assert reasons(made)["broken"] is Reason.OPERATOR_FAILED
        assert "TypeError" in decision_and_text(made.assessments[broken.key])[1]
        assert actions(made)["other"] is Action.RESIZE


def test_the_largest_saving_moves_first() -> None:
    jobs = [running(name=f"job-{n}", rate=100.0, ratios={"exposed_communication": 0.1 * n}) for n in range(4, 8)]
    made = plan(fleet(jobs, {"a100": A100}, FREE.model_copy(update={"max_concurrent_migrations": 1})))
    assert [name for name, action in actions(made).items() if action is Action.RESIZE] == ["job-7"]
    assert {reasons(made)[f"job-{n}"] for n in (4, 5, 6)} == {Reason.MIGRATION_LIMIT_REACHED}


def test_what_the_user_demands_comes_before_savings() -> None:
    denied = running(name="denied", made=spec(placement={"pools": {"deny": ["a100"]}}))
    edited = replace(running(name="edited"), workload_hash="new")
    made = plan(
        fleet([running(name="saver"), denied, edited], policy=FREE.model_copy(update={"max_concurrent_migrations": 2}))
    )
    assert actions(made) == {"saver": Action.HOLD, "denied": Action.MOVE, "edited": Action.UPDATE}


STRICT = PlacementPolicySpec.model_validate(
    {"defaultAdaptationMode": "Off", "maxConcurrentMigrations": 0, "maxMovesPerHour": 0, "minRunTime": "168h"}
)
ASKED = {"requireApproval": True, "maxMoves": 0, "cooldown": "24h"}


def seen(job: Job, generation: int | None) -> Job:
    """The newest generation of the spec that was seen to allow where the job is; the spec is at 2 now."""
    assert job.state.revision is not None
    return changed(
        job, generation=2, revision=replace(job.state.revision, generation=generation), last_move_at=NOW - 60, moves=9
    )


@pytest.mark.parametrize(
    ("sections", "action"),
    [
        ({"placement": {"pools": {"deny": ["a100"]}}}, Action.MOVE),
        ({"placement": {"pools": {"allow": ["a10g"]}}}, Action.MOVE),
        ({"elasticity": {"minChips": 8, "maxChips": 8}}, Action.RESIZE),
        ({"chips": 2}, Action.UPDATE),
    ],
)
def test_an_edit_of_the_users_is_not_held_back_by_limits_of_the_operators_moves(
    sections: dict[str, Any], action: Action
) -> None:
    pools = {"a100": A100} if action is Action.RESIZE else POOLS
    edited = seen(replace(running(), spec=spec(adaptation=ASKED, **sections)), 1)
    assert actions(plan(fleet([edited], pools, STRICT))) == {"job": action}


def test_a_place_that_is_left_because_its_pool_was_changed_keeps_to_the_limits() -> None:
    """The spec allowed it a moment ago, and a label that somebody took off a pool may send away a thousand jobs."""
    made = spec(placement={"pools": {"selector": {"matchLabels": {"team": "a"}}}})
    pools = {"a100": A100, "a10g": replace(A10G, labels={"team": "a"})}
    unlabelled = seen(running(made=made), 2)
    assert reasons(plan(fleet([unlabelled], pools, STRICT))) == {"job": Reason.ADAPTATION_OFF}
    none_at_once = FREE.model_copy(update={"max_concurrent_migrations": 0})
    assert reasons(plan(fleet([unlabelled], pools, none_at_once))) == {"job": Reason.MIGRATION_LIMIT_REACHED}
    assert actions(plan(fleet([unlabelled], pools, FREE))) == {"job": Action.MOVE}


def test_chips_promised_to_migrations_and_starts_are_not_free() -> None:
    job = running(name="mover")
    assert job.state.revision is not None
    target = replace(job.state.revision, revision=2, placement=Placement("a10g", 8, 2), since=None)
    migration = Migration("d-1", Action.MOVE, Phase.DRAINING, job.state.revision, target, NOW, NOW, Reason.MOVING, "m")
    moving = changed(job, migration=migration)
    assert _due(moving) == {"a10g": 8}, "its old pods still hold what it leaves"
    gone = changed(moving, revisions={})
    assert _due(gone) == {"a10g": 8, "a100": 4}, "until the verdict it may have to go back"
    assert _due(changed(gone, migration=replace(migration, without_return=Reason.SOURCE_NOT_HELD))) == {"a10g": 8}
    arrived = {2: replace(job.observed.revisions[1], revision=2, active=1)}
    starting = changed(moving, revision=target, migration=replace(migration, phase=Phase.STARTING), revisions=arrived)
    assert _due(starting) == {"a10g": 4, "a100": 4}, "one of two pods is there, and r1 has none"
    there = {2: replace(arrived[2], active=2, nodes={"n1": 1, "n2": 1})}
    proving = changed(moving, revision=target, migration=replace(migration, phase=Phase.VERIFYING), revisions=there)
    assert _due(proving) == {"a100": 4}
    same_pool = replace(target, placement=Placement("a100", 8, 2))
    assert _due(changed(job, migration=replace(migration, target=same_pool))) == {"a100": 4}
    waits = spec(adaptation={"requireApproval": True})
    asked = changed(moving, spec=waits, migration=replace(migration, phase=Phase.PLANNED))
    assert _due(asked) == {}
    begun = changed(job, revision=replace(job.state.revision, since=None), revisions={})
    assert _due(begun) == {"a100": 4}
    crash = Crash(1, 6, "trainer", 1, "Error", NOW)
    for state, kept in (
        (RevisionState(1, exists=True, crash=crash), {"a100": 4}),
        (RevisionState(1, exists=True, suspended=True, crash=crash), {}),
    ):
        assert _due(changed(running(), revisions={1: state})) == kept, "during back-off the chips are kept"
    assert _due(replace(begun, spec=spec(suspend=True))) == _due(changed(begun, finished="Failed")) == {}


def _due(job: Job) -> dict[str, int]:
    """Chips of each pool that are kept for a job beside what its pods hold."""
    room, other = Room(POOLS, [job]), fresh("other")
    left = {name: sum(room.fits(other, [Placement(name, n, n) for n in range(1, 65)])) for name in POOLS}
    return {name: pool.free - left[name] for name, pool in POOLS.items() if left[name] < pool.free}


# --- what pods say of themselves -------------------------------------------------------------------------------------

# Of these, readers let through what is admissible.
REPORTED = st.sampled_from([0.0, 5e-324, 1e-12, 1e-6, 0.5, 1.0, 638.0, 1e12, 1e18, 1.7e308])


@given(
    reported=st.dictionaries(st.sampled_from(list(Field)), st.tuples(REPORTED, REPORTED, REPORTED)),
    targets=st.sampled_from([{}, {"minScalingEfficiency": "0.5"}, {"budget": "9"}, {"maxCostPerMillionSamples": "3"}]),
)
def test_no_job_can_say_anything_that_keeps_others_from_being_planned(
    reported: dict[Field, tuple[float, float, float]], targets: dict[str, str]
) -> None:
    liar = running(name="liar", made=spec(targets=targets))
    assert liar.observed.profile is not None
    readings = dict(liar.observed.profile.readings)
    for field, values in reported.items():
        low, middle, high = sorted(values)
        if None not in (admissible(field, low), admissible(field, middle), admissible(field, high)):
            readings[field] = Reading(middle, low, high, Quality.MEASURED)
    liar = changed(liar, profile=replace(liar.observed.profile, readings=readings))
    assert set(actions(plan(fleet([liar, running(name="saver")])))) == {"liar", "saver"}


# --- what is remembered ----------------------------------------------------------------------------------------------


def shaken(job: Job, by: float) -> Job:
    assert job.observed.profile is not None
    readings = {
        field: Reading(r.value * (1 + by), r.low * (1 + by), r.high * (1 + by), r.quality)
        for field, r in job.observed.profile.readings.items()
    }
    return changed(job, profile=replace(job.observed.profile, readings=readings, newest=1.0))


def test_nothing_new_costs_nothing() -> None:
    job = running()
    first = plan(fleet([job]))
    second = plan(fleet([job], now=NOW + 10), first)
    assert second.reused == 1
    assert second.assessments[job.key] is first.assessments[job.key]


def test_a_job_that_is_news_is_evaluated_anew() -> None:
    first = plan(fleet([running()]))
    made = plan(fleet([shaken(running(), 0.1)]), first)
    assert made.reused == 0
    assert made.assessments == plan(fleet([shaken(running(), 0.1)])).assessments


def test_no_evaluation_gets_old() -> None:
    """What the moves of others have shown reaches every job."""
    job = running()
    first = plan(fleet([job]))
    assert plan(fleet([job], now=NOW + 0.4 * LONGEST_SECONDS), first).reused == 1
    assert plan(fleet([job], now=NOW + 1.5 * LONGEST_SECONDS), first).reused == 0


def test_evaluations_end_one_by_one() -> None:
    """Those of a start end at different times; when half have ended, the other half is still good."""
    jobs = [running(name=f"job-{number}", uid=f"uid-{number}") for number in range(20)]
    first = plan(fleet(jobs))
    ends = sorted(evaluated.until for evaluated in first.evaluated.values())
    made, reused = first, []
    for end in ends[8:16]:
        made = plan(fleet(jobs, now=end), made)
        reused.append(sum(each is first.evaluated[key] for key, each in made.evaluated.items()))
    assert reused == list(range(11, 3, -1))


@given(changing=st.lists(st.sets(st.integers(1, 5)), min_size=1, max_size=8))
def test_no_more_than_two_fleets_are_in_memory(changing: list[set[int]]) -> None:
    """An evaluation is held whole for one of its jobs, and the first job here never changes."""
    jobs = [running(name=f"job-{number}", uid=f"uid-{number}") for number in range(6)]
    made = plan(fleet(jobs))
    for cycle, numbers in enumerate(changing, start=1):
        jobs = [shaken(job, 0.1) if number in numbers else job for number, job in enumerate(jobs)]
        made = plan(fleet(jobs, now=NOW + cycle), made)
        held = {each.evaluation.batch for each in made.evaluated.values()}
        assert sum(batch.size for batch in held) <= 12


def test_machines_and_policies_matter() -> None:
    job = running()
    first = plan(fleet([job]))
    cheaper = {**POOLS, "a10g": replace(A10G, price=replace(A10G.price, on_demand=0.1))}
    assert plan(fleet([job]), first).reused == 1
    assert plan(fleet([job], cheaper), first).reused == 0
    assert plan(fleet([job], policy=PlacementPolicySpec()), first).reused == 0
    assert plan(fleet([job], telemetry=False), first).reused == 0


def test_free_chips_change_the_choice_and_not_the_evaluation() -> None:
    made = spec(chips=1, targets={"objective": "MinimizeTime"}, placement={"pools": {"allow": ["a100"]}})
    job = running(Placement("a100", 1, 1), 100.0, made=made)
    first = plan(fleet([job], {"a100": A100}))
    less = fleet([job], {"a100": replace(A100, free=4)})
    second = plan(less, first)
    assert second.reused == 1
    assert second.assessments == plan(less).assessments
    assert second.assessments != first.assessments


def test_a_deadline_is_looked_at_again_every_minute() -> None:
    made = spec(progress={"totalSamples": 10**12}, targets={"deadline": "2028-01-01T00:00:00Z"})
    job = running(made=made)
    first = plan(fleet([job]))
    assert plan(fleet([job], now=NOW + 59), first).reused == 1
    assert plan(fleet([job], now=NOW + 61), first).reused == 0


def test_the_default_policy_only_recommends() -> None:
    assert AUTO.default_adaptation_mode != PlacementPolicySpec().default_adaptation_mode
    assert reasons(plan(fleet([running()], policy=PlacementPolicySpec()))) == {"job": Reason.POLICY_RECOMMEND_ONLY}
