"""What is observed of a trace that is under way."""

from rightpool.api.trace import TraceRanks, TraceReason, TraceState, TraceSummary
from rightpool.api.value_object import value_object


@value_object
class RankTrace:
    """What became of one rank."""

    rank: int
    """Its number, among all pods."""
    reason: TraceReason | None = None
    """Why there is no trace of it. None where there is one."""
    message: str = ""
    """The sidecar's words on the reason."""
    size_bytes: int | None = None
    """Of the file, packed; None without one."""
    sha256: str | None = None
    """Of the file, in hexadecimal; None without one."""
    summary: TraceSummary | None = None
    """None without a trace."""


@value_object
class PodTrace:
    """What the sidecar of one pod says of a request. `id` and `rank` are the request's."""

    id: str
    """As the user named the request."""
    rank: int | None
    """The rank that is asked for; None: all."""
    state: TraceState
    """How far the request is."""
    reason: TraceReason | None = None
    """Why it has failed; None where it has not."""
    message: str = ""
    """The sidecar's words on the reason."""
    world: int | None = None
    """Ranks of the program, in all pods."""
    ranks: tuple[RankTrace, ...] = ()
    """Those that were asked for; empty until it is over."""


@value_object
class TraceAnswer:
    """What the sidecars of a Revision together say of a request. `id` and `rank` are the request's."""

    id: str
    """As the user named the request."""
    rank: int | None
    """The rank that is asked for; None: all."""
    state: TraceState
    """How far the request is, all pods together."""
    pod: str | None = None
    """That has the rank; of all ranks that which `summary` is of. None before it is known."""
    reason: TraceReason | None = None
    """Why it has failed; None where it has not."""
    message: str = ""
    """The sidecars' words on the reason, or on what is waited for."""
    size_bytes: int | None = None
    """Of the file, packed; of all ranks the sum. None without one."""
    sha256: str | None = None
    """Of the file, in hexadecimal; of all ranks as `digest_of_all` makes it. None without one."""
    summary: TraceSummary | None = None
    """Of all ranks: that of the one that never waits, else of the first. None without a trace."""
    ranks: TraceRanks | None = None
    """Of a request for all ranks: what there is so far."""
