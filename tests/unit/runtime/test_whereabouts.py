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
from rightpool.planning.jobs.job import Job
from rightpool.runtime.observe.whereabouts import found_at
from tests.unit.planning.jobs import changed
from tests.unit.runtime.test_members import GPU, KEY, Seen, member

OWNERS = {("node-1", GPU): "a100", ("node-2", GPU): "a10g"}


def found(nodes: Sequence[str], state: JobState) -> Job:
    pods = [member(f"p{number}") for number in range(len(nodes))]
    for pod, node in zip(pods, nodes, strict=True):
        pod["spec"]["nodeName"] = node
    seen = Seen(*pods)
    seen.refresh()
    stored, (child,) = seen.store.job(KEY), seen.store.adopted()
    assert stored is not None
    job = changed(replace(stored.job, state=state), revisions=dict(seen.store.revisions(KEY, "uid-1")))
    pools = {name: SimpleNamespace(name=name, accelerator=SimpleNamespace(key=name)) for name in OWNERS.values()}
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
