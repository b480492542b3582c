"""Why a trace that was asked for is not taken, as data. reporting/trace_texts.py says it in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InvalidRequest:
    """The annotation can't be read."""


@dataclass(frozen=True, slots=True)
class NoProfiler:
    """Profiling is off."""


@dataclass(frozen=True, slots=True)
class NothingToTrace:
    """No pods run that stay where they are."""


@dataclass(frozen=True, slots=True)
class StoppedTooSoon:
    """The pods went before the trace was complete."""

    ended: bool
    """Whether the job has ended; else it was stopped or moved."""


@dataclass(frozen=True, slots=True)
class TookTooLong:
    """No trace within the time that one may take."""

    limit: float
    """Seconds."""

    cause: str | None
    """What the sidecars said last, empty where they said nothing. None: traces of other jobs came first."""


TraceSetback = InvalidRequest | NoProfiler | NothingToTrace | StoppedTooSoon | TookTooLong
