"""Why an offer to a server is none, as a typed reason with its numbers."""

from __future__ import annotations

from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.wording import moment, number
from rightpool.planning.offers.rejection import RejectionReason, RuledOut
from rightpool.profiles.served import RequestTime

_ALONE: Final = {
    RequestTime.WHOLE: "one request",
    RequestTime.FIRST_TOKEN: "the first token of one request",
    RequestTime.BETWEEN_TOKENS: "the next token of one request",
}


@value_object
class CacheShort(RuledOut):
    """The chips have memory for the keys and values of less than one request."""

    reason = RejectionReason.MEMORY
    pool: str
    """Name of the AcceleratorPool."""
    held: float
    """Requests that it is enough for."""

    def text(self) -> str:
        return (
            f"chips of {self.pool} hold the keys and values of {number(self.held)} requests beside "
            "placement.memoryPerChip: lower it if less is needed"
        )


@value_object
class TooSlowAlone(RuledOut):
    """One request by itself takes longer than the limit."""

    reason = RejectionReason.TOO_SLOW_ALONE
    alone: float
    """Seconds."""
    limit: float
    """Seconds."""
    time: RequestTime = RequestTime.WHOLE
    """Which time has this limit."""

    def text(self) -> str:
        alone, limit = moment(self.alone), moment(self.limit)
        what = _ALONE[self.time]
        return f"{what} by itself takes {alone} there, and the limit is {limit}: no number of replicas holds it"


@value_object
class LatencyNotHeld(RuledOut):
    """No number of replicas that is allowed keeps the limit surely enough."""

    reason = RejectionReason.LATENCY_NOT_HELD
    chance: float
    """Probability that it is kept with as many as help."""
    limit: float
    """Seconds."""
    needed: int | None = None
    """Replicas that would keep it; None where no number does."""
    most: int | None = None
    """Replicas that are allowed."""

    def text(self) -> str:
        if self.needed is not None:
            return f"needs {self.needed} replicas at the recorded peak, and replicas.max is {self.most}: raise it"
        return (
            f"{moment(self.limit)} hold over the recorded week with {self.chance:.0%} at most, and 90% are "
            "needed: relax the limit"
        )


@value_object
class LoadExtrapolated(RuledOut):
    """A replica would have more at once than anything shows."""

    reason = RejectionReason.LOAD_EXTRAPOLATED
    load: float
    """Requests of a batch at the peak."""
    seen: float
    """The most that were seen."""

    def text(self) -> str:
        return (
            f"batches would be of {number(self.load)}, and no more than {number(self.seen)} were seen: "
            "raise replicas.min, or send it more at once for a while"
        )
