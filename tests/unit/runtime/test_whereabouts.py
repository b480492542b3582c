"""Where an adopted object is while it goes from one pool to another by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.units import unix_time_of
from rightpool.planning.jobs.adopted import AwaitedChips
from rightpool.planning.jobs.job import Job
from rightpool.runtime.observe.whereabouts import found_at
from tests.unit.planning.jobs import changed
from tests.unit.runtime.makers import Body
from tests.unit.runtime.test_members import CHIPS, GPU, KEY, Seen, member

OWNERS = {("node-1", GPU): "a100", ("node-2", GPU): "a10g"}


def found(nodes: Sequence[str], state: JobState, *waiting: Body) -> Job:
    pods = [*(member(f"p{number}") for number in range(len(nodes))), *waiting]
    for pod, node in zip(pods, nodes, strict=False):
        pod["spec"]["nodeName"] = node
    seen = Seen(*pods)
    seen.refresh()
    stored, (child,) = seen.store.job(KEY), seen.store.adopted()
    assert stored is not None
    job = changed(replace(stored.job, state=state), revisions=dict(seen.store.revisions(KEY, "uid-1")))
    pools = {
        name: SimpleNamespace(name=name, accelerator=SimpleNamespace(key=name), resource_name=GPU)
        for name in OWNERS.values()
    }
    inventory: Any = SimpleNamespace(inventory=SimpleNamespace(owners=OWNERS, pools=pools), spot=frozenset())
    return found_at(job, child, seen.store.pods(KEY, 1), inventory, {}, admits=False)


@pytest.mark.parametrize(
    ("nodes", "running", "pool"),
    [(["node-1", "node-1"], 0, "a100"), (["node-1", "node-2"], 1, None), (["node-2", "node-2"], 2, "a10g")],
)
def test_what_is_still_where_it_was_does_not_run_as_its_target(
    nodes: list[str], running: int, pool: str | None
) -> None:
    source, target = (Revision(number, Placement(pool, 8, 2)) for number, pool in ((9, "a100"), (1, "a10g")))
    moves = Migration("d-1", Action.MOVE, Phase.STARTING, source, target, 0.0, 0.0, Reason.PLACEMENT_DISALLOWED)
    observed = found(nodes, JobState(revision=target, migration=moves)).observed
    assert observed.revisions[1].running == running
    seen = observed.adopted
    assert seen is not None and (seen.placement and seen.placement.pool) == pool
    assert observed.refusal is None, "that it is in both is no mistake of anybody's"


def test_without_a_move_it_is_to_be_in_one_pool() -> None:
    observed = found(["node-1", "node-2"], JobState()).observed
    assert observed.refusal is not None and observed.refusal.reason is Reason.SPANS_POOLS


SINCE = "2026-11-29T12:00:00Z"


def unschedulable(name: str, **resources: Any) -> Body:
    body = member(name, ready=False)
    body["spec"] = {"containers": [{"name": "trainer", "resources": resources or CHIPS}]}
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": SINCE}
    body["status"] = {"phase": "Pending", "conditions": [{**condition, "message": "2 Insufficient nvidia.com/gpu."}]}
    return body


def test_what_no_pod_of_it_has_it_waits_for() -> None:
    seen = found([], JobState(), unschedulable("p1"), unschedulable("p2")).observed.adopted
    since = unix_time_of(SINCE) or 0.0
    assert seen is not None and seen.awaits == AwaitedChips(8, 2, GPU, since)
    partly = found(["node-1"], JobState(), unschedulable("p1"), unschedulable("p2")).observed.adopted
    assert partly is not None and partly.awaits == AwaitedChips(8, 2, GPU, since, "a100"), "the others wait there"


@pytest.mark.parametrize(
    ("nodes", "pods"),
    [
        ([], []),
        ([], [unschedulable("p1", limits={"example.com/unknown": "1"})]),
        ([], [member("p1", ready=False)]),
    ],
    ids=["no pods", "chips of no pool", "nothing is known of its pod yet"],
)
def test_nothing_else_is_waited_for(nodes: list[str], pods: list[Body]) -> None:
    seen = found(nodes, JobState(), *pods).observed.adopted
    assert seen is not None and seen.awaits is None
