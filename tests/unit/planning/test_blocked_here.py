"""Jobs whose pods find no chips where they are: they take part in the plan there, and Kubernetes starts them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.transitions import advance
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import AUTO, GREEDY, NOW, fleet, plan, running, spec
from tests.unit.planning.test_fleet_allocator import new, only, wide
from tests.unit.planning.test_plan import FREE
from tests.unit.prediction.fixtures import A100_CHIP, pool

WORDS = "Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


def blocked(chips: int = 4, pods: int = 1, found: int = 0) -> Job:
    """It ran, its nodes were lost, and for half an hour there are others for so many of its pods."""
    made = spec(chips // pods, elasticity={"minChips": chips, "maxChips": chips, "batch": "Global"})
    child = RevisionState(
        1,
        True,
        active=pods,
        running=found,
        nodes={"node-1": found} if found else {},
        on_nodes=found,
        blocked=WORDS,
        unschedulable_since=NOW - 1800.0,
        started_at=NOW - 86_400.0,
    )
    return running(
        Placement("only", chips, pods), 640.0, "ran", made, pools=only(0), revisions={1: child}, profile=None
    )


@pytest.mark.parametrize("one", [new(), blocked()], ids=["new", "blocked"])
def test_a_job_that_runs_gives_way_to_it_as_to_a_new_one(one: Job) -> None:
    made = plan(fleet([wide(), one], only(0), FREE), allocator=FleetAllocator())
    assert made.assessments[wide().key].decision.reason is Reason.FLEET_GAINS
    waits = made.assessments[one.key]
    assert waits.decision.reason is Reason.WAITING_FOR_CAPACITY
    assert decision_text(one, waits, NOW).startswith("nodes of only are kept free for it")


def test_only_pods_that_lack_chips_ask_for_some() -> None:
    """What it has it keeps; nothing is done to it, and Kubernetes starts them where there is room."""
    one = blocked(8, pods=2, found=1)
    for free in (0, 4):
        machines = {"only": pool("only", A100_CHIP, 2.0, total=16, free=free, per_node=8)}
        made = plan(fleet([one], machines, FREE), allocator=FleetAllocator())
        found = made.assessments[one.key]
        assert found.evaluated is not None and found.evaluated.places == (Placement("only", 4, 1),)
        assert found.decision.action is (Action.START if free else Action.HOLD)
        assert advance(one, found, AUTO, NOW, lambda *_: "").state.migration is None
    text = decision_text(one, found, NOW)
    assert text == f"there is room for 4 chips of only, and Kubernetes starts it; now it says {WORDS}"


def test_where_kubernetes_does_not_take_chips_it_asks_for_others() -> None:
    """Something else is missing on their nodes. After startDeadline others have them."""
    one = blocked()
    machines = only(4) | {"other": pool("other", A100_CHIP, 4.0, total=8, free=0, per_node=8)}
    before, found = None, []
    for later in (0.0, 601.0):
        before = plan(fleet([one], machines, FREE, NOW + later), before, GREEDY)
        found.append(before.assessments[one.key].decision)
    assert [(made.reason, made.target and made.target.pool) for made in found] == [
        (Reason.STARTING, "only"),
        (Reason.WAITING_FOR_CAPACITY, "other"),
    ]


@pytest.mark.parametrize("one", [new(8), blocked(8)], ids=["new", "blocked"])
def test_small_jobs_do_not_pass_over_it_for_ever(one: Job) -> None:
    """What comes free adds up to what it needs."""
    small = [replace(new(1), key=JobKey("ns", f"small-{n}"), created_at=NOW - 60.0) for n in range(4)]
    made = plan(fleet([one, *small], only(4), FREE), allocator=GREEDY)
    starts = {key.name for key, found in made.assessments.items() if found.decision.action is Action.START}
    assert starts == set()
