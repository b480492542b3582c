"""RequestTrace: which pods are asked, what their answers come to, and how many traces are taken at once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.trace import Trace, TraceReason, TraceState
from rightpool.cluster.resources import PODS
from rightpool.planning.job import Job
from rightpool.planning.migration.commands import RequestTrace
from rightpool.pod_client import RequestFailed
from rightpool.runtime.act.trace_answers import read_answer
from rightpool.runtime.act.tracer import ASK_SECONDS, MAX_AT_ONCE
from rightpool.workloads.kinds.job import JOBS
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World
from tests.unit.runtime.makers import child, pod

SUMMARY = {
    "on": "device",
    "seconds": 0.5,
    "steps": 4,
    "parts": {"compute": 0.5, "overlapped_communication": 0.1, "exposed_communication": 0.15, "idle": 0.25},
    "collectives": [{"name": "ncclDevKernel_AllReduce", "count": 4, "share": 0.25, "exposed": 0.15}],
    "operations": [{"name": "gemm", "count": 8, "share": 0.4}],
}
CAPTURED = {"state": "captured", "summary": SUMMARY, "bytes": 1000, "sha256": "a" * 64, "reason": "", "message": ""}


def answer(**fields: Any) -> str:
    return json.dumps({"id": "now", "rank": 0, "reason": "", "message": "", **fields})


@pytest.fixture
def traced(world: World) -> Job:
    """A job of two pods that a trace is asked of."""
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod(uid="pod-1"))
    world.store.observe(PODS, "ADDED", pod(uid="pod-2", status={"podIP": "10.0.0.8"}))
    return world.persist(trace=Trace("now", 0, TraceState.WAITING, 1.7e9, revision=1))


def test_the_pod_that_serves_it_is_followed(world: World, traced: Job) -> None:
    world.sidecars.answers = {
        "pod-1": answer(state="failed", reason="NoRank", message="no"),
        "pod-2": answer(state="capturing"),
    }
    world.run(traced)
    assert world.sidecars.traced == [("now", 0, ("pod-1", "pod-2"))]
    found = world.executor.trace_answer(traced)
    assert found is not None and (found.state, found.pod) == (TraceState.CAPTURING, "pod-2")
    world.run(traced)
    assert len(world.sidecars.traced) == 1, "not in every cycle"
    world.clock += ASK_SECONDS
    world.sidecars.answers = {"pod-2": answer(**CAPTURED)}
    world.run(traced)
    assert world.sidecars.traced[-1] == ("now", 0, ("pod-2",))
    found = world.executor.trace_answer(traced)
    assert found is not None and found.state is TraceState.CAPTURED and found.summary is not None
    assert [(part.part, part.limit) for part in found.summary.parts] == [
        ("Compute", 2.0),
        ("OverlappedCommunication", None),
        ("ExposedCommunication", pytest.approx(1 / 0.85)),
        ("Idle", pytest.approx(4 / 3)),
    ]
    world.clock += 1000
    world.run(traced)
    assert len(world.sidecars.traced) == 2, "what is over is not asked for again"


def test_no_pod_has_this_rank(world: World, traced: Job) -> None:
    refusal = answer(state="failed", reason="NoRank", message="no")
    world.sidecars.answers = {"pod-1": refusal, "pod-2": refusal}
    world.run(traced)
    found = world.executor.trace_answer(traced)
    assert found is not None and found.reason is TraceReason.NO_RANK and found.pod is None


def test_a_pod_that_does_not_answer_may_have_the_rank(world: World, traced: Job) -> None:
    world.sidecars.answers = {"pod-1": answer(state="failed", reason="NoRank", message="no")}
    world.run(traced)
    found = world.executor.trace_answer(traced)
    assert found is not None and found.state is TraceState.WAITING
    assert found.message == "1 of 2 pods did not answer (pod-2: silent)"


def test_the_pod_has_ended(world: World, traced: Job) -> None:
    world.sidecars.answers = {"pod-2": answer(state="capturing"), "pod-1": answer(state="waiting")}
    world.run(traced)
    world.store.observe(PODS, "DELETED", pod(uid="pod-2"))
    world.clock += ASK_SECONDS
    world.run(traced)
    found = world.executor.trace_answer(traced)
    assert found is not None and found.reason is TraceReason.POD_GONE and "pod-2" in found.message


def test_a_new_operator_goes_on_with_the_pod_in_the_status(world: World, traced: Job) -> None:
    trace = traced.state.trace
    assert trace is not None
    taken = traced.with_state(replace(traced.state, trace=replace(trace, state=TraceState.CAPTURING, pod="pod-1")))
    world.sidecars.answers = {"pod-1": answer(**CAPTURED), "pod-2": answer(state="waiting")}
    world.run(taken)
    assert world.sidecars.traced == [("now", 0, ("pod-1",))]


def test_a_foreign_pod_is_not_asked(world: World, traced: Job) -> None:
    world.store.observe(PODS, "ADDED", pod(uid="pod-3", owner="", status={"podIP": "10.0.0.66"}))
    world.run(traced)
    assert world.sidecars.traced == [("now", 0, ("pod-1", "pod-2"))]


def test_who_does_not_lead_asks_nobody(world: World, traced: Job) -> None:
    world.leader = False
    world.run(traced)
    assert world.sidecars.traced == []


def test_few_traces_are_taken_at_once(world: World, traced: Job) -> None:
    """A trace that nobody asks about any more, because its job has ended, makes room after a while."""
    command = RequestTrace(1, "now", 0)
    jobs = [replace(traced, uid=f"job-{number}") for number in range(MAX_AT_ONCE + 1)]
    world.sidecars.answers = {"pod-1": answer(state="waiting"), "pod-2": answer(state="waiting")}
    for job in jobs[:-1]:
        assert world.executor.needed(job, command)
        world.executor.carry_out(job, command, world.pools)
    assert not world.executor.needed(jobs[-1], command)
    world.executor.carry_out(jobs[-1], command, world.pools)
    assert len(world.sidecars.traced) == MAX_AT_ONCE
    over = changed(jobs[0], trace=Trace("now", 0, TraceState.FAILED, 1.7e9, finished_at=1.7e9))
    world.executor.trace_answer(over)
    assert world.executor.needed(jobs[-1], command)
    world.executor.carry_out(jobs[-1], command, world.pools)
    assert not world.executor.needed(jobs[0], command)
    world.clock += 60
    assert world.executor.needed(jobs[0], command)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "null",
        answer(state="perhaps"),
        answer(state="waiting", rank=-1),
        answer(state="waiting", rank=True),
        answer(state="waiting", id=7),
        answer(**{**CAPTURED, "sha256": "A" * 64}),
        answer(**{**CAPTURED, "bytes": 1e400}),
        answer(**{**CAPTURED, "summary": None}),
        answer(**{**CAPTURED, "summary": {**SUMMARY, "parts": {"compute": 0.5}}}),
        answer(**{**CAPTURED, "summary": {**SUMMARY, "parts": {"compute": 2.0, "idle": -1.0}}}),
        answer(**{**CAPTURED, "summary": {**SUMMARY, "on": "moon"}}),
        answer(**{**CAPTURED, "summary": {**SUMMARY, "operations": [{"name": "a"}]}}),
    ],
)
def test_answers_that_can_not_be_used(body: str) -> None:
    with pytest.raises(RequestFailed):
        read_answer(body)


def test_an_answer_is_bounded_and_plain() -> None:
    """The pod is the tenant's, and the status is everybody's."""
    many = [{"name": "\x1b[31m" + "x" * 500, "count": 1, "share": 0.1} for _ in range(1000)]
    found = read_answer(answer(**{**CAPTURED, "summary": {**SUMMARY, "operations": many}}))
    assert found.summary is not None and len(found.summary.operations) == 10
    assert all(len(one.name) < 81 and one.name.isprintable() for one in found.summary.operations)
    refused = read_answer(answer(state="failed", reason="Gone\n", message="\x00" * 5 + "y" * 5000))
    assert refused.reason is TraceReason.CAPTURE_FAILED and refused.message == "y" * 295
