"""What is observed of a trace that is under way."""

from dataclasses import dataclass

from rightpool.api.trace import TraceRanks, TraceReason, TraceState, TraceSummary


@dataclass(frozen=True, slots=True)
class RankTrace:
    """What became of one rank."""

    rank: int
    reason: TraceReason | None = None
    """Why there is no trace of it. None where there is one."""
    message: str = ""
    size_bytes: int | None = None
    sha256: str | None = None
    summary: TraceSummary | None = None


@dataclass(frozen=True, slots=True)
class PodTrace:
    """What the sidecar of one pod says of a request. `id` and `rank` are the request's."""

    id: str
    rank: int | None
    state: TraceState
    reason: TraceReason | None = None
    message: str = ""
    world: int | None = None
    """Ranks of the program, in all pods."""
    ranks: tuple[RankTrace, ...] = ()
    """Those that were asked for; empty until it is over."""

    @property
    def over(self) -> bool:
        return self.state in (TraceState.CAPTURED, TraceState.FAILED)


@dataclass(frozen=True, slots=True)
class TraceAnswer:
    """What the sidecars of a Revision together say of a request. `id` and `rank` are the request's."""

    id: str
    rank: int | None
    state: TraceState
    pod: str | None = None
    reason: TraceReason | None = None
    message: str = ""
    size_bytes: int | None = None
    sha256: str | None = None
    summary: TraceSummary | None = None
    ranks: TraceRanks | None = None
    """Of a request for all ranks: what there is so far."""
