"""Adopted objects that wait for chips: they take part in the plan, and Kubernetes starts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.action import Action
from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.adopted import Adopted, AwaitedChips
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.commands import Adopt, commands
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.decision import MIGRATING_ACTIONS
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, FOUR, NOW, changed, fleet, fresh, plan, running
from tests.unit.planning.test_fleet_allocator import new, only, wide
from tests.unit.planning.test_only_watched import watched
from tests.unit.planning.test_plan import FREE
from tests.unit.prediction.fixtures import A10G, A100, A100_CHIP, pool

GPU = "nvidia.com/gpu"
WORDS = "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
PENDING = RevisionState(1, True, adopted=True, active=1, nodes={}, blocked=WORDS, unschedulable_since=NOW - 60.0)


def pending(name: str = "pends", chips: int = 4, seconds: float = 60.0, **sections: Any) -> Job:
    """Its one pod has found no chips for so long."""
    made = watched(**sections)
    seen = Adopted("job-1", 1, None, awaits=AwaitedChips(chips, 1, GPU, NOW - seconds))
    return changed(fresh(name, made), adopted=seen, revisions={1: PENDING})


def by_fleet(*jobs: Job, free: int = 0) -> Plan:
    return plan(fleet(jobs, only(free), FREE), allocator=FleetAllocator())


@pytest.mark.parametrize("change", ["Recommend", "Suspend"])
def test_a_job_that_runs_gives_way_to_it(change: str) -> None:
    one, other = wide(), pending(adoption={"change": change})
    made = by_fleet(one, other)
    decision = made.assessments[one.key].decision
    assert (decision.action, decision.reason) == (Action.RESIZE, Reason.FLEET_GAINS)
    waits = made.assessments[other.key]
    assert waits.decision.reason is Reason.WAITING_FOR_CAPACITY
    assert decision_text(other, waits, NOW).startswith("4 chips of only would be next: only has no room")


def test_nothing_is_done_to_it() -> None:
    """It has no Revision before a pod has a node, and nothing is asked of its object."""
    for free in (0, 4):
        for made in (pending(), pending(adoption={"change": "Suspend"})):
            assessment = by_fleet(made, free=free).assessments[made.key]
            after = advance(made, assessment, AUTO, NOW, lambda job, assessment, now: "")
            assert after.state.revision is None and after.state.migration is None
            assert commands(after) == (Adopt(),)


def test_chips_that_are_free_are_left_to_it() -> None:
    """It has waited for longer than the other: Kubernetes is about to start it there."""
    younger = replace(new(), created_at=NOW - 30.0)
    made = by_fleet(pending(), younger, free=4)
    assert made.assessments[younger.key].decision.action is not Action.START
    decision = made.assessments[pending().key].decision
    assert (decision.action, decision.reason, decision.target) == (
        Action.START,
        Reason.STARTING,
        Placement("only", 4, 1),
    )
    text = decision_text(pending(), made.assessments[pending().key], NOW)
    assert text == f"there is room for 4 chips of only, and Kubernetes starts it; now it says {WORDS}"


def test_chips_that_kubernetes_does_not_take_are_not_kept_for_ever() -> None:
    """Something else is missing on their nodes. After startDeadline others have them, and nobody gives way any more;
    after maxWait it is asked again."""
    younger, one = replace(new(), created_at=NOW - 30.0), pending()
    at: dict[float, Plan] = {}
    before: Plan | None = None
    for later in (0.0, 300.0, 601.0, 1200.0, 5000.0):
        whole = fleet([one, younger], only(4), FREE, NOW + later)
        before = at[later] = plan(whole, before, FleetAllocator())
    started = [later for later, made in at.items() if made.assessments[younger.key].decision.action is Action.START]
    assert started == [601.0, 1200.0]
    none = plan(fleet([one, wide()], only(0), FREE, NOW + 1300.0), at[1200.0], FleetAllocator())
    assert none.assessments[wide().key].decision.action not in MIGRATING_ACTIONS


@pytest.mark.parametrize(
    ("pools", "found"),
    [
        ({}, {"a100", "a10g"}),
        ({"a100": replace(A100, tolerations=({"key": "team", "operator": "Exists"},))}, {"a10g"}),
        ({"a100": replace(A100, tolerations=({"key": GPU, "operator": "Exists"},))}, {"a100", "a10g"}),
        ({"a100": replace(A100, resource_name="nvidia.com/mig-1g.10gb")}, {"a10g"}),
        ({"a100": replace(A100, chips_per_node=2)}, {"a10g"}),
    ],
    ids=["all", "a taint", "the taint of its resource", "another resource", "too small nodes"],
)
def test_it_waits_where_its_template_lets_it(pools: Mapping[str, Pool], found: set[str]) -> None:
    """Its placement and targets are what it is moved by once it runs."""
    one = pending(placement={"pools": {"deny": ["a100"]}}, targets={"maxCostPerHour": "0.01"})
    made = plan(fleet([one], {"a100": A100, "a10g": A10G, **pools}))
    evaluated = made.assessments[one.key].evaluated
    assert evaluated is not None and {place.pool for place in evaluated.places} == found
    assert {(place.chips, place.replicas) for place in evaluated.places} == {(4, 1)}


def test_where_no_pool_has_such_chips_it_is_said() -> None:
    made = plan(fleet([one := pending(chips=64)], {"a10g": A10G}))
    decision = made.assessments[one.key].decision
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.WORKLOAD_NOT_RUNNING)
    assert "no pod of it has a node of a pool; " in decision_text(one, made.assessments[one.key], NOW)


def test_where_it_ran_before_it_waits_again() -> None:
    """Its nodes are lost, and nothing may be done to it but to make room."""
    ran = running(Placement("only", 4, 1), 320.0, "ran", watched(), pools=only(0))
    seen = Adopted("job-1", 1, None, awaits=AwaitedChips(4, 1, GPU, NOW - 60.0))
    one = changed(ran, adopted=seen, revisions={1: PENDING})
    made = by_fleet(wide(), one)
    assert made.assessments[wide().key].decision.reason is Reason.FLEET_GAINS
    after = advance(one, made.assessments[one.key], AUTO, NOW, lambda job, assessment, now: "")
    assert after.state.migration is None
    moved = changed(one, adopted=Adopted("job-1", 1, FOUR))
    assert moved.awaits is None, "it has nodes again"


HAS = Placement("only", 8, 2)
TWO_POOLS = {
    "only": pool("only", A100_CHIP, 2.0, total=16, free=0, per_node=8),
    "other": pool("other", A100_CHIP, 2.0, total=8, free=8, per_node=8),
}


def partly(**sections: Any) -> Job:
    """Kubernetes has had a node for one of its pods, and for half an hour has none for the other."""
    half = replace(PENDING, active=2, running=1, nodes={"node-1": 1}, started_at=NOW - 1800.0)
    made = watched(elasticity={"minChips": 8, "maxChips": 8}, **sections)
    ran = running(HAS, 640.0, "ran", made, pools=TWO_POOLS)
    lacks = Adopted("job-1", 1, HAS, awaits=AwaitedChips(4, 1, GPU, NOW - 1800.0, "only"))
    assert ran.state.revision is not None
    state = replace(ran.state, revision=replace(ran.state.revision, since=None), adopted=AdoptedObject("job-1"))
    seen = ran.observed._replace(adopted=lacks, revisions={1: half})  # `adopted` is of the state, too
    return altered(ran, state=state, observed=seen)


@pytest.mark.parametrize(
    "sections",
    [{}, {"adoption": {"change": "Suspend"}, "placement": {"pools": {"allow": ["only"]}}}],
    ids=["it may not be moved", "it may be moved, and there is nowhere else"],
)
def test_pods_of_it_that_lack_chips_wait_where_the_others_are(sections: dict[str, Any]) -> None:
    """What it has it keeps, and for what it lacks room is made."""
    one = partly(**sections)
    made = plan(fleet([wide(), one], TWO_POOLS, FREE), allocator=FleetAllocator())
    assert made.assessments[wide().key].decision.reason is Reason.FLEET_GAINS
    evaluated = made.assessments[one.key].evaluated
    assert evaluated is not None and evaluated.places[-1] == Placement("only", 4, 1)
    free = replace(TWO_POOLS["only"], free=4)
    there = plan(fleet([one], {"only": free}, FREE), allocator=FleetAllocator()).assessments[one.key]
    assert (there.decision.action, there.decision.target) == (Action.START, Placement("only", 4, 1))
    for assessment in (made.assessments[one.key], there):
        after = advance(one, assessment, AUTO, NOW, lambda job, assessment, now: "")
        assert after.state.migration is None


def test_where_it_may_be_moved_it_goes_where_there_is_room_for_all_of_it() -> None:
    one = partly(adoption={"change": "Suspend"})
    assessment = plan(fleet([one], TWO_POOLS, FREE), allocator=FleetAllocator()).assessments[one.key]
    assert assessment.decision.reason is Reason.START_DEADLINE_EXCEEDED
    after = advance(one, assessment, AUTO, NOW, lambda job, assessment, now: "")
    assert after.state.migration is not None and after.state.migration.target.placement.pool == "other"


@given(
    waits=st.lists(st.tuples(st.booleans(), st.integers(1, 8), st.integers(0, 7200)), min_size=1, max_size=6),
    free=st.integers(0, 8),
    runs=st.booleans(),
)
def test_nobody_is_passed_over_for_longer_than_the_longest_wait(
    waits: list[tuple[bool, int, int]], free: int, runs: bool
) -> None:
    """Of those who have waited for too long, adopted or not, none stays without what somebody gets who has not, or
    keeps that gives way; whoever it is that the operator starts itself."""
    jobs = [
        pending(f"job-{number}", chips, seconds)
        if adopted
        else replace(new(chips), key=JobKey("ns", f"job-{number}"), created_at=NOW - seconds)
        for number, (adopted, chips, seconds) in enumerate(waits)
    ]
    everybody = [*jobs, *([wide(8 - free)] if runs and free in (0, 4, 6) else [])]
    made = by_fleet(*everybody, free=free)
    longest = FREE.fleet.max_wait.total_seconds()
    late = [job for job in jobs if NOW - job.waits_since > longest]
    gets = {key for key, one in made.assessments.items() if one.decision.action is Action.START}
    promised = {grant.key for grant in made.allocation.choice.grants if grant.place} | gets
    sizes = {
        key: one.evaluated.places[0].chips
        for key, one in made.assessments.items()
        if one.evaluated and one.evaluated.places
    }
    for job in late:
        if job.key in promised:
            continue
        for other in jobs:
            passes = other.key in gets and NOW - other.waits_since <= longest
            assert not (passes and sizes[other.key] >= sizes[job.key])
