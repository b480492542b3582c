"""A trace that a user asks for: each request is served once, or fails with a reason, whatever happens in between."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool.api.migration import Phase
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.trace import Trace, TraceRanks, TraceReason, TraceRequest, TraceState, read_request
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.planning.moves.commands import RequestTrace, commands
from rightpool.planning.moves.trace import (
    LONGEST_ALL_SECONDS,
    LONGEST_SECONDS,
    PAUSE_SECONDS,
    abandoned,
    limit_without,
    with_trace,
)

from .jobs import NOW, changed, fresh, running, spec
from .world import moved, on_a100

ASKED = TraceRequest("now", 3)
CAPTURED = TraceAnswer("now", 3, TraceState.CAPTURED, "pod-1", size_bytes=10, sha256="0" * 64)


def traced(job: Job, now: float) -> Job:
    return with_trace(job, now)


def asked(job: Job) -> list[RequestTrace]:
    return [command for command in commands(job) if isinstance(command, RequestTrace)]


def of(job: Job) -> Trace:
    assert job.state.trace is not None
    return job.state.trace


def test_a_request_is_served_once() -> None:
    job = traced(running(trace_request=ASKED), NOW)
    assert of(job) == Trace("now", TraceState.WAITING, NOW, 3, revision=1)
    assert asked(job) == [RequestTrace(1, "now", 3)]
    assert traced(job, NOW + 10) is job, "nothing is written while it waits"
    taking = traced(changed(job, trace_answer=TraceAnswer("now", 3, TraceState.CAPTURING, "pod-1")), NOW + 20)
    assert (of(taking).state, of(taking).pod) == (TraceState.CAPTURING, "pod-1")
    assert traced(taking, NOW + 30) is taking
    done = traced(changed(taking, trace_answer=CAPTURED), NOW + 40)
    assert (of(done).state, of(done).finished_at, of(done).sha256) == (TraceState.CAPTURED, NOW + 40, "0" * 64)
    assert asked(done) == []
    later = changed(done, trace_answer=None)
    assert traced(later, NOW + 86_400) is later, "the annotation stays"


def test_another_value_asks_again_after_a_pause() -> None:
    job = traced(changed(traced(running(trace_request=ASKED), NOW), trace_answer=CAPTURED), NOW + 1)
    for other in (TraceRequest("again", 3), TraceRequest("now", 4)):
        again = changed(job, trace_request=other, trace_answer=None)
        assert traced(again, NOW + PAUSE_SECONDS) is again
        next_one = of(traced(again, NOW + 1 + PAUSE_SECONDS))
        assert (next_one.id, next_one.rank, next_one.state) == (other.id, other.rank, TraceState.WAITING)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (running(trace_request=TraceRequest("invalid-1", valid=False)), TraceReason.INVALID_REQUEST),
        (running(trace_request=ASKED, made=spec(profiling={"mode": "Off"})), TraceReason.NO_PROFILER),
        (fresh(trace_request=ASKED), TraceReason.NOT_RUNNING),
    ],
    ids=lambda value: value if isinstance(value, TraceReason) else "",
)
def test_there_is_no_pause_after_a_request_that_was_refused(job: Job, reason: TraceReason) -> None:
    refused = traced(job, NOW)
    assert of(refused).reason is reason
    again = traced(changed(refused, trace_request=TraceRequest("again")), NOW + 1)
    assert of(again).id == "again"


def test_a_request_that_comes_while_another_is_served_waits_for_it() -> None:
    job = traced(running(trace_request=ASKED), NOW)
    other = changed(job, trace_request=TraceRequest("other"))
    assert traced(other, NOW + 1) is other
    assert traced(changed(job, trace_request=None), NOW + 1).state is job.state, "and is not given up"


def test_an_answer_to_another_request_is_none() -> None:
    job = changed(traced(running(trace_request=TraceRequest("new")), NOW), trace_answer=CAPTURED)
    assert traced(job, NOW + 1) is job


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (fresh(trace_request=ASKED), TraceReason.NOT_RUNNING),
        (running(trace_request=ASKED, made=spec(suspend=True)), TraceReason.NOT_RUNNING),
        (running(trace_request=ASKED, made=spec(profiling={"mode": "Off"})), TraceReason.NO_PROFILER),
        (running(trace_request=read_request("../x")), TraceReason.INVALID_REQUEST),
    ],
)
def test_what_can_not_be_served_says_why(job: Job, reason: TraceReason) -> None:
    refused = traced(job, NOW)
    assert (of(refused).state, of(refused).reason) == (TraceState.FAILED, reason)
    assert of(refused).message and asked(refused) == []
    assert traced(refused, NOW + 86_400) is refused


def test_it_fails_with_its_revision() -> None:
    job = traced(running(trace_request=ASKED), NOW)
    assert job.state.revision is not None
    for gone in (
        changed(job, spec=spec(suspend=True)),
        changed(job, revision=None),
        changed(job, revision=replace(job.state.revision, revision=2)),
        changed(job, migration=replace(moved(on_a100()).job.state.migration, phase=Phase.DRAINING)),
    ):
        assert of(traced(gone, NOW + 1)).reason is TraceReason.POD_GONE
    restarting = changed(job, revisions={})
    assert traced(restarting, NOW + 1) is restarting, "a sidecar that is started again makes its pod unready"
    over = abandoned(of(job), NOW + 1)
    assert over is not None and over.reason is TraceReason.POD_GONE and abandoned(over, NOW + 2) is over
    assert abandoned(None, NOW) is None


def test_an_answer_that_comes_with_the_end_of_the_pods_counts() -> None:
    job = changed(traced(running(trace_request=ASKED), NOW), trace_answer=CAPTURED, revisions={})
    assert of(traced(job, NOW + 1)).state is TraceState.CAPTURED


def test_it_does_not_wait_for_ever() -> None:
    job = traced(running(trace_request=ASKED), NOW)
    silent = changed(job, trace_answer=TraceAnswer("now", 3, TraceState.WAITING, message="1 of 1 pods did not answer"))
    assert traced(silent, NOW + LONGEST_SECONDS) is silent
    over = of(traced(silent, NOW + LONGEST_SECONDS + 1))
    assert over.reason is TraceReason.TIMED_OUT and over.message.endswith("1 of 1 pods did not answer")
    assert of(traced(job, NOW + LONGEST_SECONDS + 1)).message.endswith("traces of other jobs came first")


def test_all_ranks_have_more_time_and_what_has_come_is_not_lost() -> None:
    every = TraceRequest("now", None)
    job = traced(running(trace_request=every), NOW)
    assert (of(job).rank, asked(job)) == (None, [RequestTrace(1, "now", None)])
    waiting = TraceAnswer("now", None, TraceState.CAPTURING, message="1 of 2 pods did not answer")
    partly = replace(waiting, pod="pod-1", sha256="0" * 64, ranks=TraceRanks(captured=1, failed=1, pods=1))
    taking = traced(changed(job, trace_answer=partly), NOW + 1)
    assert (of(taking).state, of(taking).pod, of(taking).ranks) == (TraceState.CAPTURING, None, None)
    late = NOW + LONGEST_ALL_SECONDS
    assert traced(changed(taking, trace_answer=partly), late) == changed(taking, trace_answer=partly)
    done = of(traced(changed(taking, trace_answer=partly), late + 1))
    assert (done.state, done.pod, done.ranks) == (TraceState.CAPTURED, "pod-1", partly.ranks)
    for nothing in (waiting, replace(waiting, ranks=TraceRanks(captured=0, failed=1, pods=0))):
        over = of(traced(changed(taking, trace_answer=nothing), late + 1))
        assert (over.state, over.reason) == (TraceState.FAILED, TraceReason.TIMED_OUT)
    one = changed(job, trace_request=TraceRequest("now", 0))
    assert traced(one, NOW + 1) is one, "another request, which waits for this one"


_ANSWERS = st.one_of(
    st.none(),
    st.builds(
        TraceAnswer,
        st.sampled_from(["now", "b", "c"]),
        st.sampled_from([0, 1, None]),
        st.sampled_from(TraceState),
        st.just("pod-1"),
    ),
)
_REQUESTS = st.one_of(
    st.none(), st.builds(TraceRequest, st.sampled_from(["now", "b"]), st.sampled_from([0, 1, None]), st.booleans())
)


@given(st.lists(st.tuples(_REQUESTS, _ANSWERS, st.booleans(), st.floats(0, 400))))
def test_whatever_happens_each_trace_ends_and_is_read_back_as_it_was(
    steps: list[tuple[TraceRequest | None, TraceAnswer | None, bool, float]],
) -> None:
    job, now, open_since = running(), NOW, None
    here = job.observed.revisions
    for request, answer, there, seconds in steps:
        now = round(now + seconds, 3)
        revisions = here if there else {}
        before = changed(job, trace_request=request, trace_answer=answer, revisions=revisions)
        job = traced(before, now)
        trace = job.state.trace
        if trace is None:
            continue
        assert (trace.finished_at is not None) == trace.over
        assert (trace.reason is not None) == (trace.state is TraceState.FAILED)
        open_since = None if trace.over else trace.since
        assert open_since is None or now - open_since <= LONGEST_ALL_SECONDS + 400
        assert len(asked(job)) == (0 if trace.over else 1) or not there
        stored = ProfiledJobStatus(state=job.state).to_dict()
        read = ProfiledJobStatus.from_dict(stored).state.trace
        assert read is not None and read.to_dict() == stored["trace"]


@pytest.mark.parametrize(
    ("value", "request_"),
    [
        ("now", TraceRequest("now")),
        (" a.b_c-1 ", TraceRequest("a.b_c-1")),
        ("now:12", TraceRequest("now", 12)),
        ("now:all", TraceRequest("now", None)),
        ("all", TraceRequest("all", 0)),
        ("x" * 63, TraceRequest("x" * 63)),
    ],
)
def test_values_of_the_annotation(value: str, request_: TraceRequest) -> None:
    assert read_request(value) == request_


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "../x",
        "-a",
        "a-",
        "a b",
        "now:",
        "now:-1",
        "now:ALL",
        "now:all0",
        "now:all:0",
        "now:1.5",
        "now:1000001",
        "now:٣",
        "x" * 64,
        "\x00",
        "\ud800",
    ],
)
def test_hostile_values_of_the_annotation(value: str) -> None:
    assert not read_request(value).valid


@given(st.text(max_size=200))
def test_any_value_gives_an_id_that_is_short_and_plain(value: str) -> None:
    request = read_request(value)
    assert 0 < len(request.id) <= 63 and request.id.isascii() and request.id.isprintable()
    assert read_request(value) == request


def test_every_reason_of_a_sidecar_is_known() -> None:
    assert set(contract.TRACE_REASONS) <= set(TraceReason)


def test_every_reason_is_explained() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "trace.md").read_text(encoding="utf-8")
    table = page.partition("| reason | why there is no trace")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.M) == [reason.value for reason in TraceReason]


def test_the_limit_of_a_part() -> None:
    """Amdahl's law: a program that waits for 0.24 of its time is at most 1.32 times as fast without."""
    assert limit_without(0.24) == pytest.approx(1.3158, abs=1e-4)
    assert limit_without(0.0) == 1.0
    assert limit_without(1.0) is None


@given(st.floats(0, 0.99))
def test_the_limit_is_reached_where_the_rest_takes_its_time(share: float) -> None:
    limit = limit_without(share)
    assert limit is not None and limit * (1 - share) == pytest.approx(1.0)
