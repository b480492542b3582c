"""The whole fleet: who comes first, what is remembered, and that it comes to rest."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.placement import Placement, hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning.decision import MIGRATING_ACTIONS, REASONS, Action
from rightpool.planning.ledger import LedgerEntry, Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.plan import Plan, alike, plan, reservations
from rightpool.planning.snapshot import JobKey, JobState, Snapshot
from rightpool.profiles.profile import Profile, Reading
from rightpool.profiles.sample import Field, Quality
from rightpool.telemetry.fields import admissible
from tests.unit.planning.jobs import AUTO, DAY, FOUR, NOW, POOLS, fleet, fresh, running, spec
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
    grow = spec(chips=4, targets={"objective": "MinimizeTime"}, elasticity={"minChips": 2, "maxChips": 4})
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
    assert job.profile is not None
    readings = {**job.profile.readings, Field.SAMPLES_PER_SECOND: Reading("a lot", 1.0, 1.0, Quality.MEASURED)}  # type: ignore[arg-type]
    broken = replace(job, profile=replace(job.profile, readings=readings))
    snapshot = fleet([broken, running(name="other")])
    first = plan(snapshot)
    for made in (first, plan(snapshot, first)):
        assert reasons(made)["broken"] is Reason.OPERATOR_FAILED
        assert "TypeError" in made.assessments[broken.key].decision.message
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


def seen(job: JobState, generation: int | None) -> JobState:
    """The newest generation of the spec that was seen to allow where the job is; the spec is at 2 now."""
    assert job.ref is not None
    return replace(job, generation=2, ref=replace(job.ref, generation=generation), last_move_at=NOW - 60, moves=9)


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
    assert job.ref is not None
    target = replace(job.ref, revision=2, placement=Placement("a10g", 8, 2), since=None)
    migration = Migration("d-1", Action.MOVE, Phase.DRAINING, job.ref, target, NOW, NOW, Reason.MOVING, "m")
    moving = replace(job, migration=migration)
    assert reservations([moving]) == {"a10g": 8}
    arrived = {1: job.revisions[1], 2: replace(job.revisions[1], revision=2, active=1)}
    starting = replace(moving, ref=target, migration=replace(migration, phase=Phase.STARTING), revisions=arrived)
    assert reservations([starting]) == {"a10g": 4}
    same_pool = replace(target, placement=Placement("a100", 8, 1))
    assert reservations([replace(job, migration=replace(migration, target=same_pool))]) == {"a100": 4}
    waits = spec(adaptation={"requireApproval": True})
    asked = replace(moving, spec=waits, migration=replace(migration, phase=Phase.PLANNED))
    assert reservations([asked]) == {}
    begun = replace(job, ref=replace(job.ref, since=None), revisions={})
    assert reservations([begun]) == {"a100": 4}
    assert reservations([replace(begun, spec=spec(suspend=True)), replace(begun, finished="Failed")]) == {}


# --- what pods say of themselves -------------------------------------------------------------------------------------

# Of these, sources let through what is admissible.
SAID = st.sampled_from([0.0, 5e-324, 1e-12, 1e-6, 0.5, 1.0, 638.0, 1e12, 1e18, 1.7e308])


@given(
    said=st.dictionaries(st.sampled_from(list(Field)), st.tuples(SAID, SAID, SAID)),
    targets=st.sampled_from([{}, {"minScalingEfficiency": "0.5"}, {"budget": "9"}, {"maxCostPerMillionSamples": "3"}]),
)
def test_no_job_can_say_anything_that_keeps_others_from_being_planned(
    said: dict[Field, tuple[float, float, float]], targets: dict[str, str]
) -> None:
    liar = running(name="liar", made=spec(targets=targets))
    assert liar.profile is not None
    readings = dict(liar.profile.readings)
    for field, values in said.items():
        low, middle, high = sorted(values)
        if None not in (admissible(field, low), admissible(field, middle), admissible(field, high)):
            readings[field] = Reading(middle, low, high, Quality.MEASURED)
    liar = replace(liar, profile=replace(liar.profile, readings=readings))
    assert set(actions(plan(fleet([liar, running(name="saver")])))) == {"liar", "saver"}


# --- what is remembered ----------------------------------------------------------------------------------------------


def shaken(job: JobState, by: float) -> JobState:
    assert job.profile is not None
    readings = {
        field: Reading(r.value * (1 + by), r.low * (1 + by), r.high * (1 + by), r.quality)
        for field, r in job.profile.readings.items()
    }
    return replace(job, profile=replace(job.profile, readings=readings, newest=1.0))


def test_nothing_new_costs_nothing() -> None:
    first = plan(fleet([running()]))
    second = plan(fleet([shaken(running(), 0.005)], now=NOW + 10), first)
    assert second.reused == 1
    key = JobKey("ns", "job")
    assert second.assessments[key] is first.assessments[key]


@pytest.mark.parametrize(
    "changed",
    [
        shaken(running(), 0.1),
        running(generation=2),
        running(workload_hash="new"),
        running(profile=None),
        running(invalid="no"),
        running(finished="Completed"),
        running(created_at=NOW - 9 * DAY),
    ],
)
def test_what_matters_is_seen(changed: JobState) -> None:
    first = plan(fleet([running()]))
    assert plan(fleet([changed]), first).reused == 0
    assert plan(fleet([changed]), first).assessments == plan(fleet([changed])).assessments


def test_machines_and_policies_matter() -> None:
    first = plan(fleet([running()]))
    cheaper = {**POOLS, "a10g": replace(A10G, price=replace(A10G.price, on_demand=0.1))}
    assert plan(fleet([running()], cheaper), first).reused == 0
    assert plan(fleet([running()], policy=PlacementPolicySpec()), first).reused == 0
    assert plan(fleet([running()], telemetry=False), first).reused == 0


def test_free_chips_change_the_choice_and_not_the_survey() -> None:
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
    first = plan(fleet([running(made=made)]))
    assert plan(fleet([running(made=made)], now=NOW + 59), first).reused == 1
    assert plan(fleet([running(made=made)], now=NOW + 61), first).reused == 0


def test_steps_pass_without_news() -> None:
    profile = running().profile
    assert profile is not None
    readings = {**profile.readings, Field.STEPS: Reading(5.0, 5.0, 5.0, Quality.MEASURED)}
    assert alike(profile, replace(profile, readings=readings))
    assert not alike(profile, None)
    assert alike(None, None)


# --- properties ------------------------------------------------------------------------------------------------------


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    pools: dict[str, Pool] = {
        "a100": pool("a100", A100_CHIP, draw(st.none() | st.floats(0.5, 8.0)), total=64, free=0),
        "a10g": replace(A10G, price=replace(A10G.price, on_demand=draw(st.floats(0.1, 3.0))), total=64, free=0),
        "twin": pool("twin", A100_CHIP, draw(st.floats(0.5, 8.0)), total=32, free=0, per_node=4, intra=20e9),
    }
    jobs: list[JobState] = []
    used = dict.fromkeys(pools, 0)
    for number in range(draw(st.integers(1, 5))):
        made = spec(
            targets={
                "objective": draw(st.sampled_from(["MinimizeCost", "MinimizeTime", "Balanced"])),
                "maxCostPerHour": draw(st.none() | st.just("12.00")),
                "minScalingEfficiency": draw(st.none() | st.just("0.80")),
            },
            elasticity={"minChips": 1, "maxChips": 8, "batch": draw(st.sampled_from(["PerChip", "Global"]))},
            adaptation={"maxMoves": 1000, "cooldown": "0s"},
        )
        name = f"job-{number}"
        where = draw(st.none() | st.sampled_from(sorted(pools)))
        chips = draw(st.sampled_from([1, 2, 4, 8]))
        if where is None or used[where] + chips > 32:
            jobs.append(fresh(name, made, created_at=NOW - DAY - number))
            continue
        per_pod = min(chips, pools[where].chips_per_node)
        used[where] += chips
        ratios: dict[str, float | None] = {
            "chip_busy": draw(st.none() | st.floats(0.05, 1.0)),
            "exposed_communication": draw(st.none() | st.floats(0.0, 0.9)),
            "matrix_active": draw(st.none() | st.floats(0.0, 1.0)),
            "memory_bandwidth": draw(st.none() | st.floats(0.0, 1.0)),
            "memory_used": draw(st.none() | st.floats(1e9, 70e9)),
        }
        place = Placement(where, chips, chips // per_pod)
        jobs.append(running(place, draw(st.floats(1.0, 1e5)), name, made, pools=pools, ratios=ratios))
    spare = draw(st.integers(0, 16))
    pools = {name: replace(p, free=max(p.total - used[name] - 16, 0) + spare) for name, p in pools.items()}
    return fleet(jobs, pools, FREE)


@given(snapshot=fleets())
@settings(max_examples=150, deadline=None)
def test_whatever_the_fleet(snapshot: Snapshot) -> None:
    made = plan(snapshot)
    taken = dict.fromkeys(snapshot.pools, 0)
    for key, assessment in made.assessments.items():
        decision, job = assessment.decision, snapshot.jobs[key]
        assert decision.message
        assert decision.reason in REASONS[decision.action] - {Reason.OPERATOR_FAILED}
        for candidate in assessment.candidates:
            assert candidate.rejection is None or candidate.rejection.message
            assert candidate.cost_per_hour is None or candidate.cost_per_hour >= 0.0
            assert candidate.cost_per_million is None or candidate.cost_per_million.median >= 0.0
            assert candidate.probability is None or 0.0 <= candidate.probability <= 1.0
        if decision.action in MIGRATING_ACTIONS or decision.action is Action.START:
            target = decision.target
            assert target is not None
            assert [c.placement for c in assessment.candidates if c.eligible] == [target]
            own = job.ref.placement.chips if job.ref is not None and job.ref.placement.pool == target.pool else 0
            taken[target.pool] += max(target.chips - own, 0)
    for name, chips in taken.items():
        assert chips <= snapshot.pools[name].free


@given(snapshot=fleets(), seed=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_jobs_and_pools_does_not_matter(snapshot: Snapshot, seed: Any) -> None:
    keys, names = list(snapshot.jobs), list(snapshot.pools)
    seed.shuffle(keys)
    seed.shuffle(names)
    other = replace(
        snapshot,
        jobs={key: snapshot.jobs[key] for key in keys},
        pools={name: snapshot.pools[name] for name in names},
    )
    assert dict(plan(other).assessments) == dict(plan(snapshot).assessments)


@given(snapshot=fleets())
@settings(max_examples=60, deadline=None)
def test_what_is_remembered_changes_nothing(snapshot: Snapshot) -> None:
    first = plan(snapshot)
    freed = replace(snapshot, pools={n: replace(p, free=p.free + 3) for n, p in snapshot.pools.items()})
    assert dict(plan(freed, first).assessments) == dict(plan(freed).assessments)


@given(snapshot=fleets())
@settings(max_examples=100, deadline=None)
def test_with_constant_inputs_the_fleet_comes_to_rest(snapshot: Snapshot) -> None:
    """Every move delivers exactly what was predicted; after a few rounds nothing moves any more, and stays that way."""
    previous: Plan | None = None
    quiet = 0
    for _ in range(25):
        previous = plan(snapshot, previous)
        after = carried_out(snapshot, previous)
        quiet = quiet + 1 if after.jobs == snapshot.jobs else 0
        if quiet == 3:
            return
        snapshot = replace(after, now=after.now + 10.0)
    raise AssertionError("still moving after 25 rounds")


@pytest.mark.parametrize("price", [2.0, 4.0])
@pytest.mark.parametrize("objective", ["MinimizeCost", "MinimizeTime"])
def test_an_efficiency_that_looks_different_from_elsewhere_is_no_merry_go_round(price: float, objective: str) -> None:
    made = spec(
        targets={"objective": objective, "minScalingEfficiency": "0.80"},
        adaptation={"maxMoves": 1000, "cooldown": "0s"},
    )
    pools = {"a10g": replace(A10G, free=46), "twin": pool("twin", A100_CHIP, price, free=16, per_node=4, intra=20e9)}
    ratios = {"chip_busy": None, "exposed_communication": 0.25, "memory_used": 22.9e9}
    job = running(Placement("a10g", 2, 1), 1.0, made=made, pools=pools, ratios=ratios)
    snapshot, moves = fleet([job], pools, FREE), 0
    for _ in range(8):
        after = carried_out(snapshot, plan(snapshot))
        moves += after.jobs != snapshot.jobs
        snapshot = replace(after, now=after.now + 10.0)
    assert 1 <= moves <= 3


def carried_out(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The fleet after every decision of the plan was carried out and kept its promise."""
    jobs = dict(snapshot.jobs)
    free = {name: p.free for name, p in snapshot.pools.items()}
    for key, assessment in made.assessments.items():
        decision, job = assessment.decision, jobs[key]
        if decision.target is None or not (decision.action in MIGRATING_ACTIONS or decision.action is Action.START):
            continue
        if job.ref is not None:
            free[job.ref.placement.pool] += job.ref.placement.chips
        free[decision.target.pool] -= decision.target.chips
        assert free[decision.target.pool] >= 0
        jobs[key] = arrived(job, assessment.decision.target or FOUR, assessment, snapshot)
    return replace(snapshot, jobs=jobs, pools={n: replace(p, free=free[n]) for n, p in snapshot.pools.items()})


def arrived(job: JobState, target: Placement, assessment: Any, snapshot: Snapshot) -> JobState:
    candidate, pools = assessment.decision.candidate, snapshot.pools
    if job.ref is None or candidate.samples_per_second is None:
        rate, history = 100.0 * target.chips, job.history
        ratios: Mapping[str, float | None] = {"chip_busy": 0.9, "memory_used": 5e9}
    else:
        rate = candidate.samples_per_second.median
        ratios = _ratios(job.profile)
        history = (*job.history, _delivered(job, target, assessment, snapshot.now))[-10:]
    there = running(target, rate, job.key.name, job.spec, pools=pools, ratios=ratios, moves=job.moves + 1)
    revision = 1 if job.ref is None else job.ref.revision + 1
    assert there.ref is not None and there.profile is not None
    key = replace(there.profile.key, revision=revision)
    return replace(
        there,
        created_at=job.created_at,
        ref=replace(there.ref, revision=revision, cost_per_hour=hourly_cost(target, pools[target.pool])),
        revisions={revision: replace(there.revisions[1], revision=revision)},
        profile=replace(there.profile, key=key),
        history=history,
    )


def _ratios(profile: Profile | None) -> Mapping[str, float | None]:
    assert profile is not None
    names = ("chip_busy", "exposed_communication", "matrix_active", "memory_bandwidth", "memory_used")
    return {name: profile.value(Field[name.upper()]) for name in names}


def _delivered(job: JobState, target: Placement, assessment: Any, now: float) -> LedgerEntry:
    assert job.ref is not None
    rate = assessment.decision.candidate.samples_per_second.median
    measured = assessment.current.samples_per_second.median
    return LedgerEntry(
        id="d-1",
        action=assessment.decision.action,
        source=job.ref.placement,
        target=target,
        predicted_samples_per_second=rate,
        predicted_cost_per_million=None,
        baseline_samples_per_second=measured,
        baseline_cost_per_million=None,
        realised_samples_per_second=rate,
        realised_cost_per_million=None,
        started_at=now,
        finished_at=now,
        outcome=Outcome.VERIFIED,
        reason=Reason.DELIVERED,
    )


def test_the_default_policy_only_recommends() -> None:
    assert AUTO.default_adaptation_mode != PlacementPolicySpec().default_adaptation_mode
    assert reasons(plan(fleet([running()], policy=PlacementPolicySpec()))) == {"job": Reason.POLICY_RECOMMEND_ONLY}
