"""What is observed of a trace that is under way."""

from dataclasses import dataclass

from rightpool.api.trace import TraceReason, TraceState, TraceSummary


@dataclass(frozen=True, slots=True)
class TraceAnswer:
    """What the sidecars of a Revision say of a request. `id` and `rank` are the request's."""

    id: str
    rank: int
    state: TraceState
    pod: str | None = None
    reason: TraceReason | None = None
    message: str = ""
    size_bytes: int | None = None
    sha256: str | None = None
    summary: TraceSummary | None = None
