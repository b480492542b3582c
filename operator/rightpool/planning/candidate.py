"""A candidate: a placement with its estimate, its cost, and a verdict."""

from dataclasses import dataclass
from enum import StrEnum

from rightpool.hardware.placement import Placement
from rightpool.prediction.estimate import Estimate


class RejectionReason(StrEnum):
    """Why a placement was not considered, or not taken. Part of the API: shown by `explain`, never renamed."""

    POOL_DENIED = "PoolDenied"  # not in placement.pools.allow, in deny, or not matched by the selector
    VENDOR_NOT_DECLARED = "VendorNotDeclared"  # another vendor's chips; placement.pools.allow does not name the pool
    NODE_SELECTOR = "NodeSelector"  # no node of the pool has the labels that the template asks for
    CAPACITY_TYPE = "CapacityType"  # spot where only on-demand is allowed, or the pool sells no spot
    SIZE_NOT_OFFERED = "SizeNotOffered"  # the pool can't give that many chips in whole nodes or slices
    MEMORY = "InsufficientMemory"  # peak use does not fit the chip
    PRICE_UNKNOWN = "PriceUnknown"
    NO_CAPACITY = "NoCapacity"  # not enough free chips now
    AVOIDED = "RolledBackBefore"  # a move there was undone, or the job did not start there
    COST_PER_HOUR = "MaxCostPerHour"
    COST_PER_SAMPLE = "MaxCostPerMillionSamples"
    BUDGET = "BudgetExceeded"
    DEADLINE = "DeadlineMissed"
    SCALING = "MinScalingEfficiency"
    NOT_PREDICTABLE = "NotPredictable"  # no Profile yet, or a field that the prediction needs is missing
    NOT_BETTER = "NotBetter"  # staying, or another candidate, is better
    BELOW_MIN_SAVINGS = "BelowMinSavings"  # better, by less than adaptation.minSavings
    UNCERTAIN = "UncertainSaving"  # probably better, and not surely enough
    DOES_NOT_PAY_BACK = "DoesNotPayBack"  # better, and a restart costs more than it would bring


@dataclass(frozen=True, slots=True)
class Rejection:
    """A typed reason with the numbers behind it, for a human."""

    reason: RejectionReason
    message: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """samples_per_second: None where it can't be predicted. cost_per_hour: dollars; None where the price is unknown.

    cost_per_million: dollars per million samples. scaling_efficiency: throughput / (chips × one-chip throughput).
    saving: share of the score that moving saves (negative: worse). probability: that it is better at all.
    rejection: None means eligible.
    """

    placement: Placement
    samples_per_second: Estimate | None
    cost_per_hour: float | None
    cost_per_million: Estimate | None
    scaling_efficiency: float | None = None
    score: float | None = None
    saving: float | None = None
    probability: float | None = None
    rejection: Rejection | None = None

    @property
    def eligible(self) -> bool:
        """No gate rejected it."""
        return self.rejection is None
