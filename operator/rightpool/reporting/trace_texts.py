"""Why a trace was not taken, in words."""

from __future__ import annotations

from rightpool.api.wording import span
from rightpool.planning.moves.trace_setback import (
    InvalidRequest,
    NoProfiler,
    NothingToTrace,
    StoppedTooSoon,
    TookTooLong,
    TraceSetback,
)


def trace_setback_text(setback: TraceSetback) -> str:
    """What happened, with the remedy where there is one."""
    match setback:
        case InvalidRequest():
            return (
                "the annotation rightpool.dev/trace must be ID, ID:RANK or ID:all, the id a label's value of 1 to 63 "
                "characters and the rank that of a process"
            )
        case NoProfiler():
            return "spec.profiling.mode is Off, so no profiler is in the pods"
        case NothingToTrace():
            return "the job has no running pods, or is being moved: ask again, with another id, when it runs"
        case StoppedTooSoon(ended):
            gone = "has ended" if ended else "was stopped or moved"
            return f"the job {gone} before its trace was complete"
        case TookTooLong(limit, cause):
            why = "traces of other jobs came first" if cause is None else cause
            return f"no trace within {span(limit)}{f': {why}' if why else ''}"
