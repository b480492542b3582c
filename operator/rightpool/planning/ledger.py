"""The ledger: every decision with what it promised and what it delivered."""

from dataclasses import dataclass

from rightpool.api.status import MAX_HISTORY, Outcome
from rightpool.hardware.placement import Placement

__all__ = ["MAX_HISTORY", "AvoidedPlacement", "LedgerEntry", "Outcome"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Money in dollars, times in Unix seconds. predicted_*, realised_*: samples/s and dollars per million samples.

    lost_seconds: time without progress. cost: what the move itself cost (chips paid while nothing progressed).
    """

    id: str
    action: str
    source: Placement
    target: Placement
    predicted_samples_per_second: float | None
    predicted_cost_per_million: float | None
    baseline_samples_per_second: float | None
    baseline_cost_per_million: float | None
    realised_samples_per_second: float | None
    realised_cost_per_million: float | None
    started_at: float
    finished_at: float
    outcome: Outcome
    reason: str
    message: str = ""
    lost_seconds: float = 0.0
    cost: float = 0.0

    @property
    def prediction_error(self) -> float | None:
        """Measured throughput against the predicted one: -0.1 is 10% slower. None where one of them is not known."""
        if not self.predicted_samples_per_second or self.realised_samples_per_second is None:
            return None
        return self.realised_samples_per_second / self.predicted_samples_per_second - 1.0


@dataclass(frozen=True, slots=True)
class AvoidedPlacement:
    """A pool on which a move of this job did not pay, or where it did not start. until: Unix seconds; None: until the
    job's spec changes."""

    pool: str
    chips: int
    reason: str
    until: float | None = None
