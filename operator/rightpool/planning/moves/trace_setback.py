"""Why a trace that was asked for is not taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from rightpool.api.trace import TraceReason
from rightpool.api.wording import span


class TraceSetback(ABC):
    """What came in the way of a trace."""

    reason: ClassVar[TraceReason]

    @abstractmethod
    def text(self) -> str:
        """What happened, with the remedy where there is one."""


@dataclass(frozen=True, slots=True)
class InvalidRequest(TraceSetback):
    """The annotation can't be read."""

    reason = TraceReason.INVALID_REQUEST

    def text(self) -> str:
        return (
            "the annotation rightpool.dev/trace must be ID, ID:RANK or ID:all, the id a label's value of 1 to 63 "
            "characters and the rank that of a process"
        )


@dataclass(frozen=True, slots=True)
class NoProfiler(TraceSetback):
    """Profiling is off."""

    reason = TraceReason.NO_PROFILER

    def text(self) -> str:
        return "spec.profiling.mode is Off, so no profiler is in the pods"


@dataclass(frozen=True, slots=True)
class NothingToTrace(TraceSetback):
    """No pods run that stay where they are."""

    reason = TraceReason.NOT_RUNNING

    def text(self) -> str:
        return "the job has no running pods, or is being moved: ask again, with another id, when it runs"


@dataclass(frozen=True, slots=True)
class StoppedTooSoon(TraceSetback):
    """The pods went before the trace was complete."""

    reason = TraceReason.POD_GONE
    ended: bool
    """Whether the job has ended; else it was stopped or moved."""

    def text(self) -> str:
        gone = "has ended" if self.ended else "was stopped or moved"
        return f"the job {gone} before its trace was complete"


@dataclass(frozen=True, slots=True)
class TookTooLong(TraceSetback):
    """No trace within the time that one may take."""

    reason = TraceReason.TIMED_OUT
    limit: float
    """Seconds."""

    cause: str | None
    """What the sidecars said last, empty where they said nothing. None: traces of other jobs came first."""

    def text(self) -> str:
        why = "traces of other jobs came first" if self.cause is None else self.cause
        return f"no trace within {span(self.limit)}{f': {why}' if why else ''}"
