"""The plan of any fleet: it keeps its invariants, and comes to rest when it is carried out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.moves.beginning import with_decision
from rightpool.planning.offers import evaluate
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import MIGRATING_ACTIONS, REASONS
from rightpool.planning.offers.experience import fleet_experience
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from rightpool.reporting.candidate_texts import verdict_text
from tests.unit.planning.jobs import (
    DAY,
    FOUR,
    GREEDY,
    NOW,
    changed,
    decision_and_text,
    fleet,
    fresh,
    plan,
    running,
    spec,
)
from tests.unit.planning.swap_allocator import BestSingleSwap
from tests.unit.planning.test_plan import FREE
from tests.unit.prediction.fixtures import A10G, A100_CHIP, pool

ALLOCATORS: list[Allocator] = [GREEDY, BestSingleSwap(), FleetAllocator()]
NAMED = ["greedy", "swap", "fleet"]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    pools: dict[str, Pool] = {
        "a100": pool("a100", A100_CHIP, draw(st.none() | st.floats(0.5, 8.0)), total=64, free=0),
        "a10g": replace(A10G, price=replace(A10G.price, on_demand=draw(st.floats(0.1, 3.0))), total=64, free=0),
        "twin": pool("twin", A100_CHIP, draw(st.floats(0.5, 8.0)), total=32, free=0, per_node=4, intra=20e9),
    }
    jobs: list[Job] = []
    used = dict.fromkeys(pools, 0)
    for number in range(draw(st.integers(1, 5))):
        made = spec(
            targets={
                "objective": draw(st.sampled_from(["MinimizeCost", "MinimizeTime", "Balanced"])),
                "maxCostPerHour": draw(st.none() | st.just("12.00")),
                "minScalingEfficiency": draw(st.none() | st.just("0.80")),
            },
            elasticity={"minChips": 1, "maxChips": 8, "batch": draw(st.sampled_from(["PerChip", "Global"]))},
            adaptation={"maxMoves": 1000, "cooldown": "0s", "yield": draw(st.sampled_from(["Never", "Move"]))},
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


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=NAMED)
@given(snapshot=fleets())
def test_whatever_the_fleet(allocator: Allocator, snapshot: Fleet) -> None:
    made = plan(snapshot, allocator=allocator)
    taken = dict.fromkeys(snapshot.pools, 0)
    for key, assessment in made.assessments.items():
        decision, job = assessment.decision, snapshot.jobs[key]
        assert decision_and_text(assessment)[1]
        assert decision.reason in REASONS[decision.action] - {Reason.OPERATOR_FAILED}
        for candidate in assessment.candidates:
            assert candidate.rejection is None or verdict_text(candidate)
            assert candidate.cost_per_hour is None or candidate.cost_per_hour >= 0.0
            assert candidate.cost_per_million is None or candidate.cost_per_million.median >= 0.0
            assert candidate.probability is None or 0.0 <= candidate.probability <= 1.0
        if decision.action in MIGRATING_ACTIONS or decision.action is Action.START:
            target = decision.target
            assert target is not None
            assert [c.placement for c in assessment.candidates if c.eligible] == [target]
            own = (
                job.state.revision.placement.chips
                if job.state.revision is not None and job.state.revision.placement.pool == target.pool
                else 0
            )
            taken[target.pool] += max(target.chips - own, 0)
    for name, chips in taken.items():
        assert chips <= snapshot.pools[name].free


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=NAMED)
@given(snapshot=fleets(), seed=st.randoms(use_true_random=False))
def test_the_order_of_jobs_and_pools_does_not_matter(allocator: Allocator, snapshot: Fleet, seed: Any) -> None:
    keys, names = list(snapshot.jobs), list(snapshot.pools)
    seed.shuffle(keys)
    seed.shuffle(names)
    other = replace(
        snapshot,
        jobs={key: snapshot.jobs[key] for key in keys},
        pools={name: snapshot.pools[name] for name in names},
    )
    found = plan(other, allocator=allocator).assessments
    assert dict(found) == dict(plan(snapshot, allocator=allocator).assessments)


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=NAMED)
@given(snapshot=fleets(), more=st.lists(st.integers(0, 3), min_size=3, max_size=3), moved=st.booleans())
def test_what_is_remembered_changes_nothing(
    allocator: Allocator, snapshot: Fleet, more: list[int], moved: bool
) -> None:
    first = plan(snapshot, allocator=allocator)
    after = carried_out(snapshot, first) if moved else snapshot
    pools = {name: replace(p, free=p.free + more[n]) for n, (name, p) in enumerate(after.pools.items())}
    freed = replace(after, pools=pools)
    # What moves of others have shown waits for the end of a job's window.
    assume(fleet_experience(freed.jobs.values(), pools, NOW) == fleet_experience(snapshot.jobs.values(), pools, NOW))
    found = plan(freed, first, allocator)
    assume(found.crowded == first.crowded)
    assert dict(found.assessments) == dict(plan(freed, allocator=allocator).assessments)


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=NAMED)
@given(snapshot=fleets(), written=st.lists(st.booleans(), min_size=5, max_size=5))
def test_killed_between_any_two_moves_the_next_plan_goes_on_from_what_is(
    allocator: Allocator, snapshot: Fleet, written: list[bool]
) -> None:
    """Some decisions of a plan were written, and all that was remembered is gone: what was begun is not decided anew,
    no chip is promised twice, and a plan that is written in full leaves nothing to decide."""
    first = plan(snapshot, allocator=allocator)
    chosen = {key: one for (key, one), write in zip(first.assessments.items(), written, strict=False) if write}
    some = _begun(snapshot, chosen)
    begun = {key for key in chosen if some.jobs[key].state is not snapshot.jobs[key].state}
    second = plan(some, allocator=allocator)
    assert not any(second.assessments[key].withdrawn or _acts(second.assessments[key]) for key in begun)
    whole = _begun(some, second.assessments)
    taken = dict.fromkeys(snapshot.pools, 0)
    for key, job in whole.jobs.items():
        state, before = job.state, snapshot.jobs[key].state.revision
        if state is snapshot.jobs[key].state or state.revision is None:
            continue
        there = (state.migration.target if state.migration is not None else state.revision).placement
        here = 0 if before is None or before.placement.pool != there.pool else before.placement.chips
        taken[there.pool] += max(there.chips - here, 0)
    assert all(chips <= snapshot.pools[name].free for name, chips in taken.items())
    third = plan(whole, allocator=allocator)
    assert not any(_acts(one) for key, one in third.assessments.items() if whole.jobs[key] is not some.jobs[key])


def _begun(snapshot: Fleet, assessments: Mapping[JobKey, Assessment]) -> Fleet:
    """The fleet once these decisions are written, and nothing else was done."""
    begun = {key: with_decision(snapshot.jobs[key], one, NOW, lambda *_: "") for key, one in assessments.items()}
    return replace(snapshot, jobs={**snapshot.jobs, **begun})


def _acts(assessment: Assessment) -> bool:
    return assessment.decision.action in MIGRATING_ACTIONS or assessment.decision.action is Action.START


@given(snapshot=fleets(), size=st.integers(1, 3))
def test_in_parts_a_fleet_is_evaluated_as_in_one(snapshot: Fleet, size: int) -> None:
    whole = plan(snapshot)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "CHUNK", size)
        parts = plan(snapshot)
        again = plan(snapshot, parts)
    assert dict(parts.assessments) == dict(whole.assessments)
    assert again.reused == len(snapshot.jobs)


@pytest.mark.parametrize("allocator", ALLOCATORS, ids=NAMED)
@given(snapshot=fleets())
def test_with_constant_inputs_the_fleet_comes_to_rest(allocator: Allocator, snapshot: Fleet) -> None:
    """Every move delivers exactly what was predicted; after a few rounds nothing moves any more, and stays that way."""
    previous: Plan | None = None
    quiet = 0
    for _ in range(25):
        previous = plan(snapshot, previous, allocator)
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


def carried_out(snapshot: Fleet, made: Plan) -> Fleet:
    """The fleet after every decision of the plan was carried out and kept its promise."""
    jobs = dict(snapshot.jobs)
    free = {name: p.free for name, p in snapshot.pools.items()}
    for key, assessment in made.assessments.items():
        decision, job = assessment.decision, jobs[key]
        if decision.target is None or not (decision.action in MIGRATING_ACTIONS or decision.action is Action.START):
            continue
        if job.state.revision is not None:
            free[job.state.revision.placement.pool] += job.state.revision.placement.chips
        free[decision.target.pool] -= decision.target.chips
        assert free[decision.target.pool] >= 0
        jobs[key] = arrived(job, assessment.decision.target or FOUR, assessment, snapshot)
    return replace(snapshot, jobs=jobs, pools={n: replace(p, free=free[n]) for n, p in snapshot.pools.items()})


def arrived(job: Job, target: Placement, assessment: Any, snapshot: Fleet) -> Job:
    candidate, pools = assessment.decision.candidate, snapshot.pools
    if job.state.revision is None or candidate.throughput is None:
        rate, history = 100.0 * target.chips, job.state.history
        ratios: Mapping[str, float | None] = {"chip_busy": 0.9, "memory_used": 5e9}
    else:
        rate = candidate.throughput.median
        ratios = _ratios(job.observed.profile)
        history = (*job.state.history, _delivered(job, target, assessment, pools, snapshot.now))[-10:]
    there = running(target, rate, job.key.name, job.spec, pools=pools, ratios=ratios, moves=job.state.moves + 1)
    revision = 1 if job.state.revision is None else job.state.revision.revision + 1
    assert there.state.revision is not None and there.observed.profile is not None
    key = there.observed.profile.key._replace(revision=revision)
    return changed(
        there,
        created_at=job.created_at,
        revision=replace(
            there.state.revision, revision=revision, cost_per_hour=pools[target.pool].price.hourly(target)
        ),
        revisions={revision: replace(there.observed.revisions[1], revision=revision)},
        profile=replace(there.observed.profile, key=key),
        history=history,
    )


def _ratios(profile: Profile | None) -> Mapping[str, float | None]:
    assert profile is not None
    names = ("chip_busy", "exposed_communication", "matrix_active", "memory_bandwidth", "memory_used")
    return {name: profile.value(Field[name.upper()]) for name in names}


def _delivered(job: Job, target: Placement, assessment: Any, pools: Mapping[str, Pool], now: float) -> LedgerEntry:
    assert job.state.revision is not None
    rate = assessment.decision.candidate.throughput.median
    measured = assessment.current.throughput.median
    return LedgerEntry(
        id="d-1",
        action=assessment.decision.action,
        source=job.state.revision.placement,
        target=target,
        predicted_throughput=rate,
        baseline_throughput=measured,
        realised_throughput=rate,
        started_at=now,
        source_chip=pools[job.state.revision.placement.pool].accelerator.key,
        target_chip=pools[target.pool].accelerator.key,
        source_work=1.0,
        target_work=1.0,
        doubt=0.0,  # nothing varies by itself here
        finished_at=now,
        outcome=Outcome.VERIFIED,
        reason=Reason.DELIVERED,
    )
