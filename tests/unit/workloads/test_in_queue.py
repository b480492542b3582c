"""How an object in a queue of Kueue becomes another Revision: stopped and started by its queue."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from rightpool.contract import LABEL_REVISION
from rightpool.runtime.observe.adopted_facts import adopted_facts
from rightpool.workloads.in_place import (
    edited,
    held,
    is_held,
    let_go,
    marks,
    operations,
    original_of,
    put,
    queue_of,
    requeued,
    resumed,
    undone,
    unqueued,
)
from rightpool.workloads.kinds.kind import Unable, adoption_of
from rightpool.workloads.kinds.registry import KINDS, adoptable, pod_sets_of
from rightpool.workloads.names import LABEL_QUEUE, workload_hash
from tests.unit.workloads.kinds.test_contract import Body
from tests.unit.workloads.samples import GPU_POOL
from tests.unit.workloads.test_in_place import A100, HERE, THERE, mine, suspend

POOLS = {pool.name: pool for pool in (GPU_POOL, A100)}
FLAVOR = {"flavor": "a10g"}
each_queued = pytest.mark.parametrize(
    "field", [kind.field for kind in adoptable() if adoption_of(KINDS[kind.field]).queues]
)


def queued(field: str) -> Body:
    _, body = mine(field)
    body["metadata"]["labels"] = {LABEL_QUEUE: "research"}
    return body


def admitted(field: str, body: Body) -> Body:
    """As Kueue starts it: with the labels of a flavor, and a note of its own."""
    found = copy.deepcopy(body)
    pointers = adoption_of(KINDS[field]).settings(found)
    [pointer] = [one for one in pointers if one.endswith("/nodeSelector")]
    if field == "trainJob":
        step = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": FLAVOR}}}}}
        entry = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [step]}}}}
        theirs = {"manager": "kueue.x-k8s.io/manager", **entry}
        found["spec"]["runtimePatches"] = [*found["spec"]["runtimePatches"], theirs]
    else:
        put(found, pointer, FLAVOR)
        labels = pointer.replace("/spec/nodeSelector", "/metadata/labels/kueue.x-k8s.io~1podset")
        put(found, labels, "main")
    return found


def stopped(field: str, body: Body) -> Body:
    """By its queue, once the operator has said that it is to be."""
    found = held(KINDS[field], body, HERE, GPU_POOL)
    suspend(KINDS[field], found, True)
    return found


@each_queued
def test_it_is_stopped_and_started_by_its_queue_alone(field: str) -> None:
    kind, body = KINDS[field], queued(field)
    noted = held(kind, body, HERE, GPU_POOL)
    assert is_held(noted) and noted["spec"] == body["spec"] and original_of(kind, noted) is None
    there = requeued(kind, stopped(field, body), THERE, POOLS, A100)
    assert is_held(there) and kind.observe(there).suspended and there["metadata"]["annotations"][LABEL_REVISION] == "2"
    for patch in there["spec"].get("runtimePatches", ()):
        patch["time"] = "2026-01-01T00:00:00Z"
    assert marks(there["spec"]) == {"2"} and operations(there, requeued(kind, there, THERE, POOLS, A100)) == []
    started = resumed(kind, there)
    assert not is_held(started) and kind.observe(started).suspended


@each_queued
def test_it_becomes_what_it_was(field: str) -> None:
    kind, body = KINDS[field], queued(field)
    there = requeued(kind, stopped(field, body), THERE, POOLS, A100)
    back = requeued(kind, there, replace(HERE, revision=3), POOLS, GPU_POOL)
    assert {**back["spec"], "suspend": False} == {**body["spec"], "suspend": False} and marks(back["spec"]) == set()
    assert let_go(kind, back)["metadata"]["annotations"] == {"a": "b"}
    assert original_of(kind, let_go(kind, there)) is not None, "elsewhere the note stays"


@each_queued
def test_what_its_queue_gives_it_is_no_edit(field: str) -> None:
    kind, body = KINDS[field], queued(field)
    assert queue_of(body) == "research"
    there = requeued(kind, stopped(field, body), THERE, POOLS, A100)
    runs = admitted(field, resumed(kind, there))
    assert original_of(kind, runs) == original_of(kind, there) is not None
    assert not edited(kind, runs) and undone(kind, runs) is None and undone(kind, held(kind, runs, HERE, A100)) is None
    programs = set()
    for one in (body, admitted(field, body), there, runs):
        workload = adopted_facts(kind, one, None).workload
        assert workload is not None
        programs.add(workload_hash(pod_sets_of(workload)))
    assert len(programs) == 1
    assert unqueued(admitted(field, body)) == unqueued(body)


@each_queued
def test_what_its_user_makes_of_it_while_it_is_stopped_is_what_it_was(field: str) -> None:
    kind, body = KINDS[field], queued(field)
    there = requeued(kind, stopped(field, body), THERE, POOLS, A100)
    again = held(kind, resumed(kind, there), THERE, A100)
    [pointer] = [one for one in adoption_of(kind).settings(again) if one.endswith("/nodeSelector")][:1]
    put(again, pointer, {"team": "nlp"})
    original = original_of(kind, requeued(kind, again, replace(HERE, revision=3), POOLS, GPU_POOL))
    assert original is not None and original.placement == THERE.placement
    assert original.fields[pointer] == {"team": "nlp"}


def test_what_kueue_keeps_as_it_is_is_not_stopped() -> None:
    kind, body = KINDS["leaderWorkerSet"], queued("leaderWorkerSet")
    with pytest.raises(Unable, match="Kueue keeps a LeaderWorkerSet in queue research as it is"):
        held(kind, body, HERE, GPU_POOL)


@each_queued
def test_as_a_new_object_it_has_nothing_of_its_queue(field: str) -> None:
    kind, body = KINDS[field], queued(field)
    runs = admitted(field, body)
    there = unqueued(requeued(kind, held(kind, runs, HERE, GPU_POOL), THERE, POOLS, A100), nodes=False)
    assert "kueue.x-k8s.io" not in json.dumps(there["spec"])
    assert A100.node_selector.items() <= selectors(there["spec"]).items()


def selectors(value: Any) -> Body:
    """All labels of nodes that are asked for in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found: Body = {} if not isinstance(value, dict) else dict(value.get("nodeSelector") or {})
    for one in inner:
        found |= selectors(one)
    return found
