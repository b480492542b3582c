"""Rejections: why a placement is ruled out or not taken, as a typed reason with its parameters.

One class a sentence, which reporting/rejection_texts.py makes of it. `reason` is what the API shows.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object


class RejectionReason(StrEnum):
    """Why a placement was not considered, or not taken. Part of the API: shown by `explain`, never renamed."""

    POOL_DENIED = "PoolDenied"  # not in placement.pools.allow, in deny, or not matched by the selector
    VENDOR_NOT_DECLARED = "VendorNotDeclared"  # another vendor's chips, without a variant for them
    VARIANT_REFUSED = "InvalidVariant"  # the API server would not take a child with the variant for these chips
    NODE_SELECTOR = "NodeSelector"  # no node of the pool has the labels that the template asks for
    NODE_RESOURCES = "NodeResources"  # no node of the pool has what a pod requests beside chips
    NODE_TAINTED = "NodeTainted"  # neither the pool nor the template tolerates a taint of the nodes that would do
    CAPACITY_TYPE = "CapacityType"  # spot where only on-demand is allowed, or the pool sells no spot
    SIZE_NOT_OFFERED = "SizeNotOffered"  # the pool can't give that many chips in whole nodes or slices
    TENSOR_SPLIT = "TensorSplit"  # chips that share the matrices of a layer would not be on one fast link
    MEMORY = "InsufficientMemory"  # peak use does not fit the chip
    PRECISION = "PrecisionUnsupported"  # the chip does not have the arithmetic that the program uses
    STEPS_DIFFER = "StepsNotComparable"  # measured in steps/s, and a step has another number of samples at that size
    PRICE_UNKNOWN = "PriceUnknown"
    NO_CAPACITY = "NoCapacity"  # no room now: not enough free chips, or not on one node
    SUSPECTED = "PoolSuspected"  # too many of the last moves there were undone
    KEPT_FREE = "KeptFree"  # what is free is kept for an older job that waits
    AVOIDED = "RolledBackBefore"  # a move there was undone, or the job did not start there
    COST_PER_HOUR = "MaxCostPerHour"
    COST_PER_SAMPLE = "MaxCostPerMillionSamples"
    BUDGET = "BudgetExceeded"
    DEADLINE = "DeadlineMissed"
    SCALING = "MinScalingEfficiency"
    FLOPS_UTILIZATION = "MinModelFlopsUtilization"
    NOT_PREDICTABLE = "NotPredictable"  # no Profile yet, or a field that the prediction needs is missing
    NOT_BETTER = "NotBetter"  # staying, or another candidate, is better
    BELOW_MIN_SAVINGS = "BelowMinSavings"  # better, by less than adaptation.minSavings
    UNCERTAIN = "UncertainSaving"  # probably better, and not surely enough
    DOES_NOT_PAY_BACK = "DoesNotPayBack"  # better, and a restart costs more than it would bring


@dataclass(frozen=True, slots=True)
class Rejection:
    """A typed reason; the numbers behind it are the fields of each kind."""

    reason: ClassVar[RejectionReason]


# --- the chips -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrecisionUnsupported(Rejection):
    """The program works in a precision that the chip does not have."""

    reason = RejectionReason.PRECISION
    pool: str
    """Name of the AcceleratorPool."""
    chip: str
    """The catalog's key."""
    precision: str
    """One of contract.MODEL_PRECISIONS."""
    offered: tuple[str, ...]
    """Those that the chip has."""


@dataclass(frozen=True, slots=True)
class MemoryUnknown(Rejection):
    """A smaller chip than now, and what the job uses is not known."""

    reason = RejectionReason.MEMORY
    pool: str
    """Name of the AcceleratorPool."""
    size: int
    """Bytes of a chip."""


@dataclass(frozen=True, slots=True)
class MemoryShort(Rejection):
    """A chip has less memory than is needed."""

    reason = RejectionReason.MEMORY
    pool: str
    """Name of the AcceleratorPool."""
    size: int
    """Bytes of a chip."""
    needed: float
    """Bytes for each chip."""
    measured: bool
    """Whether that was measured; else the spec declares it."""


@dataclass(frozen=True, slots=True)
class MemoryMayNotSuffice(Rejection):
    """On fewer chips the worst case does not fit: all of what is used now is split over the chips."""

    reason = RejectionReason.MEMORY
    pool: str
    """Name of the AcceleratorPool."""
    size: int
    """Bytes of a chip."""
    chips: int
    """As many as the placement has."""
    now: int
    """Chips that it has, or asks for at its start."""
    worst: float
    """Bytes for each chip, in the worst case."""


# --- money, time and experience --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepsDiffer(Rejection):
    """Throughput is in steps a second, and with batch PerChip a step has another number of samples at this size."""

    reason = RejectionReason.STEPS_DIFFER
    chips: int
    """As many as the placement has."""


@dataclass(frozen=True, slots=True)
class PriceUnknown(Rejection):
    """The pool has no price."""

    reason = RejectionReason.PRICE_UNKNOWN
    pool: str
    """Name of the AcceleratorPool."""
    target: str | None
    """The declared target that needs one; None where the objective does."""
    objective: Objective
    """The job's targets.objective."""


@dataclass(frozen=True, slots=True)
class CurrentPriceUnknown(Rejection):
    """The pool where the job runs has no price to compare with."""

    reason = RejectionReason.PRICE_UNKNOWN
    pool: str
    """Name of the AcceleratorPool."""


@dataclass(frozen=True, slots=True)
class HourTooDear(Rejection):
    """An hour costs more than targets.maxCostPerHour."""

    reason = RejectionReason.COST_PER_HOUR
    cost: float
    """Dollars an hour."""
    most: float
    """Dollars an hour."""


@dataclass(frozen=True, slots=True)
class Avoided(Rejection):
    """Tried and left."""

    reason = RejectionReason.AVOIDED
    pool: str
    """Name of the AcceleratorPool."""
    chips: int
    """How many the job had there, of all pods."""
    why: str
    """What was found there, as a sentence."""
    remaining: float | None
    """Seconds for which it is not tried again; None: until the spec changes."""


@dataclass(frozen=True, slots=True)
class SamplesTooDear(Rejection):
    """Work costs more than targets.maxCostPerMillionSamples."""

    reason = RejectionReason.COST_PER_SAMPLE
    cost: float
    """Dollars per million samples."""
    most: float
    """Dollars per million samples."""
    measured: bool
    """Whether the cost was measured; else it is predicted."""


@dataclass(frozen=True, slots=True)
class ScalingPoor(Rejection):
    """The job scales worse than targets.minScalingEfficiency."""

    reason = RejectionReason.SCALING
    efficiency: float
    """Throughput over chips times the throughput of one chip."""
    least: float
    """The target."""
    measured: bool
    """Whether throughput was measured here; else it is predicted."""


@dataclass(frozen=True, slots=True)
class FlopsUtilizationLow(Rejection):
    """Chips do less of the model's FLOPs than targets.minModelFlopsUtilization."""

    reason = RejectionReason.FLOPS_UTILIZATION
    utilization: float
    """Share of their peak, 0 to 1."""
    least: float
    """The target."""
    measured: bool
    """Whether throughput was measured here; else it is predicted."""


@dataclass(frozen=True, slots=True)
class ScalingNoBetterKnown(Rejection):
    """The job left this placement, and how it scales there is not known better than then."""

    reason = RejectionReason.SCALING
    placement: Placement
    """Where the job was, at that size."""


@dataclass(frozen=True, slots=True)
class DeadlineMissed(Rejection):
    """Too late at this rate."""

    reason = RejectionReason.DEADLINE
    rate: float
    """Units of work a second."""
    rest: float
    """Seconds that the rest of the work takes, the restart included."""
    time_left: float
    """Seconds to the deadline."""
    measured: bool
    """Whether the rate was measured; else it is predicted."""


@dataclass(frozen=True, slots=True)
class BudgetShort(Rejection):
    """What is left of targets.budget does not pay the rest."""

    reason = RejectionReason.BUDGET
    rest: float | None
    """Dollars that the rest costs; None where the work is not known."""
    left: float
    """Dollars of the budget."""


@dataclass(frozen=True, slots=True)
class BudgetSpent(Rejection):
    """targets.budget is spent."""

    reason = RejectionReason.BUDGET
    budget: float
    """Dollars."""


# --- what is not known -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpecificationsMissing(Rejection):
    """The catalog does not say enough of two chips to compare them."""

    reason = RejectionReason.NOT_PREDICTABLE
    here: str
    """The catalog's key of the chip that the job has."""
    there: str
    """That of the chip that it would have."""


@value_object
class Gap:
    """What is missing to decide by measurements. The fields that belong to the reason are set."""

    reason: Reason
    """As Profiled or Placed has it."""
    blocked: str | None = None
    """Why pods do not run."""
    revision: int | None = None
    """The older Revision that the profile is still of."""
    window: float | None = None
    """Seconds of a window, which readings do not fill yet."""
    heard: tuple[int, int] | None = None
    """Pods that are heard, of so many."""
    queue: str | None = None
    """The queue that the child waits in."""


@dataclass(frozen=True, slots=True)
class NotMeasured(Rejection):
    """Nothing can be predicted while measurements are missing."""

    reason = RejectionReason.NOT_PREDICTABLE
    gap: Gap
    """What is missing."""


# --- the comparison --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared(Rejection):
    """Worse than staying, or not better enough."""

    objective: Objective
    """What both were compared by."""
    now: float
    """Units of work a second where the job is."""


@dataclass(frozen=True, slots=True)
class NotBetter(Compared):
    """Staying is better, or as good."""

    reason = RejectionReason.NOT_BETTER


@dataclass(frozen=True, slots=True)
class BelowMinSavings(Compared):
    """Better, by less than adaptation.minSavings."""

    reason = RejectionReason.BELOW_MIN_SAVINGS


@dataclass(frozen=True, slots=True)
class Uncertain(Compared):
    """Probably better, and not surely enough."""

    reason = RejectionReason.UNCERTAIN


@dataclass(frozen=True, slots=True)
class DoesNotPayBack(Compared):
    """Better, and a restart costs more than it would bring."""

    reason = RejectionReason.DOES_NOT_PAY_BACK


@dataclass(frozen=True, slots=True)
class OtherChosen(Rejection):
    """Another candidate is taken."""

    reason = RejectionReason.NOT_BETTER
    taken: Placement
    """Where the job goes instead."""


@dataclass(frozen=True, slots=True)
class NoRoom(Rejection):
    """The pool can't give the chips now.

    How much room there is changes all the time and is no part of it: the same rejection has the same words.
    """

    reason = RejectionReason.NO_CAPACITY
    pool: str
    """Name of the AcceleratorPool."""
    chips: int
    """As many as the placement has."""
    total: int
    """Chips there now, those in use included."""
    growable: int
    """Chips that an autoscaler would add on demand."""
    selected: bool
    """Whether only nodes count that the template selects."""


@dataclass(frozen=True, slots=True)
class KeptFree(Rejection):
    """What the pool could give is kept free for an older job that has waited for long."""

    reason = RejectionReason.KEPT_FREE
    pool: str
    """Name of the AcceleratorPool."""
    chips: int
    """As many as the placement has."""


@dataclass(frozen=True, slots=True)
class SuspectedPool(Rejection):
    """Too many of the last moves there were undone; one job at a time tries it."""

    reason = RejectionReason.SUSPECTED
    pool: str
    """Name of the AcceleratorPool."""
