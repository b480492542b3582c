"""RequestTrace: which pods are asked, what their answers come to, and how many traces are taken at once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.api.trace import Trace, TraceDevicePeak, TraceMemory, TracePhase, TraceReason, TraceState
from rightpool.cluster.resources import PODS
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.planning.moves.commands import RequestTrace
from rightpool.pod_client import RequestFailed
from rightpool.runtime.act.trace_answers import read_answer
from rightpool.runtime.act.tracer import ASK_SECONDS, MAX_AT_ONCE, SILENT_SECONDS
from tests.unit.planning.jobs import changed
from tests.unit.runtime.act.world import World
from tests.unit.runtime.makers import child, pod

GEMM = {"name": "gemm", "count": 8, "share": 0.4, "flops": 4e14, "bytes": 2e12}
OLDER_MEMORY: dict[str, Any] = {"peak": 2**34, "at": 0.43, "timeline": [2**33, 2**34]}
MEMORY = {
    **OLDER_MEMORY,
    "device": "cuda:0",
    "reserved": 2**35,
    "capacity": 2**36,
    "step": 0.25,
    "phase": "backward",
    "ends": [2**32, 2**33],
    "others": [{"device": "cuda:1", "peak": 2**30, "reserved": 2**31}, {"device": "cuda:2", "peak": 7}],
}
SUMMARY = {
    "on": "device",
    "seconds": 0.5,
    "steps": 4,
    "parts": {"compute": 0.5, "overlapped_communication": 0.1, "exposed_communication": 0.15, "idle": 0.25},
    "collectives": [{"name": "ncclDevKernel_AllReduce", "count": 4, "share": 0.25, "exposed": 0.15}],
    "operations": [GEMM, {"name": "copy", "count": 1, "share": 0.1}],
    "kinds": [{"name": "matrix", "count": 8, "share": 0.4}],
    "memory": MEMORY,
}
RANK = {
    "rank": 0,
    "state": "captured",
    "reason": "",
    "message": "",
    "summary": SUMMARY,
    "bytes": 1000,
    "sha256": "a" * 64,
}
CAPTURED = {"state": "captured", "ranks": [RANK]}


def answer(**fields: Any) -> str:
    about = {"id": "now", "rank": 0, "reason": "", "message": "", "world": None, "ranks": []}
    return json.dumps({**about, **fields})


def every(*ranks: dict[str, Any], **fields: Any) -> str:
    """The answer of a pod whose ranks are all done."""
    captured = any(one["state"] == "captured" for one in ranks)
    first = {} if captured or not ranks else {"reason": ranks[0]["reason"], "message": ranks[0]["message"]}
    state = "captured" if captured else "failed"
    return answer(**{"rank": "all", "state": state, "world": 4, "ranks": list(ranks), **first, **fields})


def waits(rank: int, share: float) -> dict[str, Any]:
    """A rank that communicates alone for this share of its time, and computes in the rest."""
    parts = {"compute": 1.0 - share, "exposed_communication": share}
    return {**RANK, "rank": rank, "sha256": f"{rank:064x}", "summary": {**SUMMARY, "parts": parts}}


def fails(rank: int, reason: str = "NoSteps") -> dict[str, Any]:
    return {"rank": rank, "state": "failed", "reason": reason, "message": "none came"}


@pytest.fixture
def traced(world: World) -> Job:
    """A job of two pods that a trace is asked of."""
    world.store.observe(JOBS, "ADDED", world.cluster.put(JOBS, child()))
    world.store.observe(PODS, "ADDED", pod(uid="pod-1"))
    world.store.observe(PODS, "ADDED", pod(uid="pod-2", status={"podIP": "10.0.0.8"}))
    return world.persist(trace=Trace("now", TraceState.WAITING, 1.7e9, 0, revision=1))


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
    over = changed(jobs[0], trace=Trace("now", TraceState.FAILED, 1.7e9, 0, finished_at=1.7e9))
    world.executor.trace_answer(over)
    assert world.executor.needed(jobs[-1], command)
    world.executor.carry_out(jobs[-1], command, world.pools)
    assert not world.executor.needed(jobs[0], command)
    world.clock += 60
    assert world.executor.needed(jobs[0], command)


# --- all ranks ---------------------------------------------------------------------------------------------------


@pytest.fixture
def every_rank(world: World, traced: Job) -> Job:
    trace = traced.state.trace
    assert trace is not None
    return traced.with_state(replace(traced.state, trace=replace(trace, rank=None)))


def ask_again(world: World, job: Job, seconds: float = ASK_SECONDS) -> TraceAnswer:
    world.clock += seconds
    world.run(job)
    found = world.executor.trace_answer(job)
    assert found is not None
    return found


def test_all_pods_are_asked_until_each_is_done(world: World, every_rank: Job) -> None:
    world.sidecars.answers = {
        "pod-1": answer(rank="all", state="waiting"),
        "pod-2": every(waits(2, 0.5), waits(3, 0.6)),
    }
    found = ask_again(world, every_rank)
    assert world.sidecars.traced == [("now", None, ("pod-1", "pod-2"))]
    assert found.state is TraceState.CAPTURING and found.ranks is not None and found.ranks.captured == 2
    world.sidecars.answers = {"pod-1": every(waits(0, 0.02), waits(1, 0.4))}
    found = ask_again(world, every_rank)
    assert world.sidecars.traced[-1] == ("now", None, ("pod-1",)), "who is done is not asked again"
    assert found.state is TraceState.CAPTURED and found.ranks is not None and found.summary is not None
    ranks = found.ranks
    assert (ranks.captured, ranks.failed, ranks.pods, ranks.program) == (4, 0, 2, 4)
    assert (ranks.straggler, ranks.shown, found.pod) == (0, 0, "pod-1")
    (waiting,) = (one for one in ranks.parts if one.part == "ExposedCommunication")
    assert (waiting.least_rank, waiting.median, waiting.most_rank) == (0, pytest.approx(0.45), 3)
    assert found.size_bytes == 4000
    world.clock += 1000
    world.run(every_rank)
    assert len(world.sidecars.traced) == 2


def test_what_fails_for_one_rank_or_pod_is_said_of_it(world: World, every_rank: Job) -> None:
    nobody = answer(rank="all", state="failed", reason="NoAgent", message="nobody reports")
    world.sidecars.answers = {"pod-1": every(waits(0, 0.3), fails(1)), "pod-2": nobody}
    found = ask_again(world, every_rank)
    assert found.state is TraceState.CAPTURED and found.ranks is not None
    assert (found.ranks.captured, found.ranks.failed) == (1, 2)
    assert [(one.pod, one.rank, one.reason) for one in found.ranks.failures] == [
        ("pod-1", 1, TraceReason.NO_STEPS),
        ("pod-2", None, TraceReason.NO_AGENT),
    ]


def test_a_silent_pod_is_given_up_when_the_others_are_done(world: World, every_rank: Job) -> None:
    world.sidecars.answers = {"pod-1": answer(rank="all", state="capturing")}
    assert ask_again(world, every_rank, 10 * SILENT_SECONDS).state is TraceState.CAPTURING, "the other one is at work"
    world.sidecars.answers = {"pod-1": every(waits(0, 0.3))}
    assert ask_again(world, every_rank).state is TraceState.CAPTURING
    assert ask_again(world, every_rank, SILENT_SECONDS - 10).state is TraceState.CAPTURING
    found = ask_again(world, every_rank, 11)
    assert found.state is TraceState.CAPTURED and found.ranks is not None
    (silent,) = found.ranks.failures
    assert (silent.pod, silent.rank, silent.reason) == ("pod-2", None, TraceReason.TIMED_OUT)


def test_nobody_answers_for_all_ranks(world: World, every_rank: Job) -> None:
    """The request itself has an end, which says so."""
    found = ask_again(world, every_rank, 10 * SILENT_SECONDS)
    assert found.state is TraceState.WAITING and found.message.startswith("2 of 2 pods did not answer")


def test_a_pod_that_ends_in_the_middle_loses_its_own_ranks(world: World, every_rank: Job) -> None:
    capturing = answer(rank="all", state="capturing")
    world.sidecars.answers = {"pod-1": capturing, "pod-2": capturing}
    ask_again(world, every_rank)
    world.store.observe(PODS, "DELETED", pod(uid="pod-2"))
    world.sidecars.answers = {"pod-1": every(waits(0, 0.3))}
    found = ask_again(world, every_rank)
    assert found.state is TraceState.CAPTURED and found.ranks is not None
    assert [(one.pod, one.reason) for one in found.ranks.failures] == [("pod-2", TraceReason.POD_GONE)]


def test_no_rank_has_a_trace(world: World, every_rank: Job) -> None:
    world.sidecars.answers = {"pod-1": every(fails(0), fails(1)), "pod-2": every(fails(2), fails(3))}
    found = ask_again(world, every_rank)
    assert (found.state, found.reason) == (TraceState.FAILED, TraceReason.NO_STEPS)
    assert found.message == "no rank was traced; rank 0 in pod pod-1: none came"
    assert found.ranks is not None and found.ranks.failed == 4


def test_a_new_operator_asks_all_pods_again(world: World, every_rank: Job) -> None:
    """The sidecars remember what they have."""
    world.sidecars.answers = {"pod-1": every(waits(0, 0.3)), "pod-2": answer(rank="all", state="waiting")}
    ask_again(world, every_rank)
    world.executor.forget({every_rank.uid})
    world.sidecars.answers["pod-2"] = every(waits(1, 0.3))
    found = ask_again(world, every_rank)
    assert world.sidecars.traced[-1] == ("now", None, ("pod-1", "pod-2"))
    assert found.state is TraceState.CAPTURED


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
        answer(state="captured"),
        answer(state="captured", ranks=[fails(0)]),
        answer(state="captured", ranks=[{**RANK, "rank": 1}]),
        answer(state="waiting", rank="some"),
        answer(state="waiting", world=-1),
        answer(state="captured", ranks=RANK),
        answer(state="captured", ranks=[{**RANK, "rank": -1}]),
        answer(state="captured", ranks=[{**RANK, "sha256": "A" * 64}]),
        answer(state="captured", ranks=[{**RANK, "bytes": 1e400}]),
        answer(state="captured", ranks=[{**RANK, "summary": None}]),
        answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "parts": {"compute": 0.5}}}]),
        answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "parts": {"compute": 2.0, "idle": -1.0}}}]),
        answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "on": "moon"}}]),
        answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "operations": [{"name": "a"}]}}]),
        *(
            answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "memory": {**MEMORY, **wrong}}}])
            for wrong in (
                {"peak": -1},
                {"peak": 2**60},
                {"at": 1.5},
                {"timeline": ["x"]},
                {"device": 7},
                {"reserved": -1},
                {"capacity": "many"},
                {"step": 2},
                {"phase": "asleep"},
                {"ends": 5},
                {"others": [{"peak": 5}]},
            )
        ),
        *(
            answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "operations": [{**GEMM, **wrong}]}}])
            for wrong in ({"flops": -1.0}, {"bytes": 1e30}, {"flops": "many"})
        ),
        answer(
            state="captured",
            ranks=[{**RANK, "summary": {**SUMMARY, "kinds": [{"name": "gemm", "count": 1, "share": 0.1}]}}],
        ),
    ],
)
def test_answers_that_can_not_be_used(body: str) -> None:
    with pytest.raises(RequestFailed):
        read_answer(body)


def test_kinds_of_operations_are_absent_where_the_sidecar_has_none() -> None:
    """As one of the version before."""
    newer = read_answer(answer(state="captured", ranks=[RANK])).ranks[0].summary
    assert newer is not None and [(one.name, one.count, one.share) for one in newer.kinds] == [("Matrix", 8, 0.4)]
    older = {name: value for name, value in SUMMARY.items() if name != "kinds"}
    before = read_answer(answer(state="captured", ranks=[{**RANK, "summary": older}])).ranks[0].summary
    assert before is not None and before.kinds == () and before.operations == newer.operations


def test_rates_and_memory() -> None:
    found = read_answer(answer(state="captured", ranks=[RANK])).ranks[0].summary
    assert found is not None and found.memory == TraceMemory(
        2**34,
        0.43,
        (2**33, 2**34),
        "cuda:0",
        2**35,
        2**36,
        0.25,
        TracePhase.BACKWARD,
        (2**32, 2**33),
        (TraceDevicePeak("cuda:1", 2**30, 2**31), TraceDevicePeak("cuda:2", 7)),
    )
    gemm, copy = found.operations
    assert (gemm.flops_per_second, gemm.bytes_per_second) == (4e14, 2e12)
    assert (copy.flops_per_second, copy.bytes_per_second) == (None, None)
    older = {name: value for name, value in SUMMARY.items() if name != "memory"}
    before = read_answer(answer(state="captured", ranks=[{**RANK, "summary": older}])).ranks[0].summary
    assert before is not None and before.memory is None
    less = read_answer(answer(state="captured", ranks=[{**RANK, "summary": {**older, "memory": OLDER_MEMORY}}]))
    summary = less.ranks[0].summary
    assert summary is not None and summary.memory == TraceMemory(2**34, 0.43, (2**33, 2**34))


def test_an_answer_is_bounded_and_plain() -> None:
    """The pod is the tenant's, and the status is everybody's."""
    many = [{"name": "\x1b[31m" + "x" * 500, "count": 1, "share": 0.1} for _ in range(1000)]
    first = {**RANK, "summary": {**SUMMARY, "operations": many}}
    found = read_answer(answer(state="captured", ranks=[first, *[RANK] * 999]))
    assert len(found.ranks) == 256
    summary = found.ranks[0].summary
    assert summary is not None and len(summary.operations) == 10
    long = {**MEMORY, "timeline": [1] * 5000, "ends": [1] * 5000, "others": MEMORY["others"] * 500}
    (one,) = read_answer(answer(state="captured", ranks=[{**RANK, "summary": {**SUMMARY, "memory": long}}])).ranks
    memory = None if one.summary is None else one.summary.memory
    assert memory is not None
    assert (len(memory.timeline), len(memory.step_ends), len(memory.others)) == (24, 16, 8)
    assert all(len(one.name) < 81 and one.name.isprintable() for one in summary.operations)
    refused = read_answer(answer(state="failed", reason="Gone\n", message="\x00" * 5 + "y" * 5000))
    assert refused.reason is TraceReason.CAPTURE_FAILED and refused.message == "y" * 295
