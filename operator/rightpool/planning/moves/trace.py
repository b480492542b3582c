"""Traces that users ask for: taken on, followed, and over. Each request is served once, or fails with a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.choices import Switch
from rightpool.api.migration import Phase
from rightpool.api.trace import Trace, TraceReason, TraceRequest, TraceState
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.planning.moves.trace_setback import (
    InvalidRequest,
    NoProfiler,
    NothingToTrace,
    StoppedTooSoon,
    TookTooLong,
    TraceSetback,
)

LONGEST_SECONDS: Final = 600.0
"""From the request to its end: traces of other jobs may come first, and a large one takes minutes to read."""

LONGEST_ALL_SECONDS: Final = 2100.0
"""The same of all ranks, which have their turns one after the other in each pod."""

PAUSE_SECONDS: Final = 30.0
"""Between the end of one trace of a job and the next: tracing slows the program down."""

_REFUSED: Final = frozenset({TraceReason.INVALID_REQUEST, TraceReason.NO_PROFILER, TraceReason.NOT_RUNNING})
"""Of requests that no program was asked to serve: after them there is no pause."""

_NEARLY_ALL: Final = 0.995  # beyond it a share of two decimals says nothing about what is left

_IN_PLACE: Final = frozenset({Phase.PLANNED, Phase.WARMING_UP, Phase.VERIFYING})


def limit_without(share: float) -> float | None:
    """How many times faster a program is at most without a part of its time, by Amdahl's law: 1 / (1 - share). None
    for a part that is nearly all."""
    return None if share > _NEARLY_ALL else 1.0 / (1.0 - max(share, 0.0))


def with_trace(job: Job, now: float) -> Job:
    """The job with the trace that is asked for begun, taken a step further, or over; the same object where nothing
    changes."""
    trace, request = job.state.trace, job.trace_request
    if trace is not None and not trace.over:
        after = _followed(job, trace, now)
        return job if after is trace else job.with_state(replace(job.state, trace=after))
    if request is None or (trace is not None and trace.answers(request)):
        return job
    ended = None if trace is None or trace.reason in _REFUSED else trace.finished_at
    if ended is not None and now - ended < PAUSE_SECONDS:
        return job
    return job.with_state(replace(job.state, trace=_begun(job, request, now)))


def longest(rank: int | None) -> float:
    """Seconds until a request for this rank, or for all (None), has failed."""
    return LONGEST_ALL_SECONDS if rank is None else LONGEST_SECONDS


def abandoned(trace: Trace | None, now: float) -> Trace | None:
    """The trace of a job that has ended."""
    if trace is None or trace.over:
        return trace
    return _not_taken(trace, StoppedTooSoon(ended=True), now)


def _begun(job: Job, request: TraceRequest, now: float) -> Trace:
    revision = job.state.revision
    number = None if revision is None else revision.revision
    trace = Trace(request.id, TraceState.WAITING, now, request.rank, number)
    if not request.valid:
        return _not_taken(replace(trace, rank=0), InvalidRequest(), now)
    if job.spec.profiling.mode is Switch.OFF:
        return _not_taken(trace, NoProfiler(), now)
    if revision is None or not _stays(job) or not job.revision(revision.revision).running:
        return _not_taken(trace, NothingToTrace(), now)
    return trace


def _followed(job: Job, trace: Trace, now: float) -> Trace:
    answer, revision = job.observed.trace_answer, job.state.revision
    if answer is not None and (answer.id, answer.rank) == (trace.id, trace.rank):
        if answer.state is TraceState.CAPTURED:
            return _captured(trace, answer, now)
        if answer.state is TraceState.FAILED:
            reason = answer.reason or TraceReason.CAPTURE_FAILED
            return _failed(replace(trace, pod=answer.pod or trace.pod, ranks=answer.ranks), reason, answer.message, now)
    if revision is None or revision.revision != trace.revision or not _stays(job):
        return _not_taken(trace, StoppedTooSoon(ended=False), now)
    if now - trace.since > (limit := longest(trace.rank)):
        if answer is not None and answer.ranks is not None and answer.ranks.captured:
            return _captured(trace, answer, now)  # the ranks that have come are not lost for the others
        return _not_taken(trace, TookTooLong(limit, None if answer is None else answer.message), now)
    if answer is not None and answer.state is TraceState.CAPTURING and trace.state is TraceState.WAITING:
        return replace(trace, state=TraceState.CAPTURING, pod=None if trace.rank is None else answer.pod)
    return trace


def _captured(trace: Trace, answer: TraceAnswer, now: float) -> Trace:
    return replace(
        trace,
        state=TraceState.CAPTURED,
        pod=answer.pod,
        finished_at=now,
        message="",
        size_bytes=answer.size_bytes,
        sha256=answer.sha256,
        summary=answer.summary,
        ranks=answer.ranks,
    )


def _failed(trace: Trace, reason: TraceReason, message: str, now: float) -> Trace:
    return replace(trace, state=TraceState.FAILED, reason=reason, message=message, finished_at=now)


def _not_taken(trace: Trace, setback: TraceSetback, now: float) -> Trace:
    return _failed(trace, setback.reason, setback.text(), now)


def _stays(job: Job) -> bool:
    """Whether the job's pods are left alone for now."""
    migration = job.state.migration
    return not job.stops and (migration is None or migration.phase in _IN_PLACE)
