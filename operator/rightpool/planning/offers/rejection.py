"""Rejections: why a placement is ruled out or not taken, as a typed reason with its parameters.

One class a sentence, which `text` makes of its fields; each names what would have to change. `reason` is what the API
shows. Those of pools and sizes are in pool_rejection.py, those of targets beside each in targets/.
"""

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import ClassVar, Final

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.api.wording import chips, gibibytes, place, span


class RejectionReason(StrEnum):
    """Why a placement was not considered, or not taken. Part of the API: shown by `explain`, never renamed."""

    POOL_DENIED = "PoolDenied"  # not in placement.pools.allow, in deny, or not matched by the selector
    VENDOR_NOT_DECLARED = "VendorNotDeclared"  # another vendor's chips, without a variant for them
    VARIANT_REFUSED = "InvalidVariant"  # the API server would not take a child with the variant for these chips
    NODE_SELECTOR = "NodeSelector"  # no node of the pool has the labels that the template asks for
    NODE_RESOURCES = "NodeResources"  # no node of the pool has what a pod requests beside chips
    NODE_TAINTED = "NodeTainted"  # neither the pool nor the template tolerates a taint of the nodes that would do
    CAPACITY_TYPE = "CapacityType"  # spot where only on-demand is allowed, or the pool sells no spot
    CAPACITY_NOT_SELECTABLE = "CapacityNotSelectable"  # spot and on-demand in one pool, which its kind can't tell apart
    OBJECT_UNCHANGEABLE = "ObjectUnchangeable"  # the adopted object can't be changed where it is
    SIZE_NOT_OFFERED = "SizeNotOffered"  # the pool can't give that many chips in whole nodes or slices
    VOLUME_ELSEWHERE = "VolumeElsewhere"  # a volume that it mounts is bound to other nodes, such as those of a zone
    SLICES_APART = "SlicesApart"  # its pods would be mixed on several slices of several hosts
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
    TOO_SLOW_ALONE = "TooSlowAlone"  # of a server: one request by itself takes longer than the limit
    LATENCY_NOT_HELD = "LatencyNotHeld"  # of a server: no number of replicas keeps the limit surely enough
    LOAD_EXTRAPOLATED = "LoadExtrapolated"  # of a server: more at once than 1.5 times what was seen
    NOT_BETTER = "NotBetter"  # staying, or another candidate, is better
    BELOW_MIN_SAVINGS = "BelowMinSavings"  # better, by less than adaptation.minSavings
    UNCERTAIN = "UncertainSaving"  # probably better, and not surely enough
    DOES_NOT_PAY_BACK = "DoesNotPayBack"  # better, and a restart costs more than it would bring


@value_object
class RuledOut(ABC):
    """Rules a placement out by itself; the numbers behind it are the fields of each kind."""

    reason: ClassVar[RejectionReason]

    @abstractmethod
    def text(self) -> str:
        """A sentence of what rules it out, with what would have to change."""


@value_object
class TargetMissed(RuledOut):
    """A declared target does not hold there. What is said of it holds for where the job is, too, and names no place."""


# --- the chips -------------------------------------------------------------------------------------------------------


@value_object
class PrecisionUnsupported(RuledOut):
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

    def text(self) -> str:
        return f"the program computes in {self.precision}, and {self.chip} of {self.pool} has {', '.join(self.offered)}"


@value_object
class MemoryUnknown(RuledOut):
    """A smaller chip than now, and what the job uses is not known."""

    reason = RejectionReason.MEMORY
    pool: str
    """Name of the AcceleratorPool."""
    size: int
    """Bytes of a chip."""

    def text(self) -> str:
        return (
            f"chips of {self.pool} have {gibibytes(self.size)}, less than now, and what the job uses is not known: "
            "set placement.memoryPerChip"
        )


@value_object
class MemoryShort(RuledOut):
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

    def text(self) -> str:
        origin = "measured" if self.measured else "placement.memoryPerChip"
        return (
            f"needs {gibibytes(self.needed)} a chip ({origin}) and 5% to spare, and chips of {self.pool} "
            f"have {gibibytes(self.size)}"
        )


@value_object
class MemoryMayNotSuffice(RuledOut):
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

    def text(self) -> str:
        return (
            f"{chips(self.chips)} of {self.pool} have {gibibytes(self.size)} each, and each may need "
            f"{gibibytes(self.worst)} and 5% to spare: say in elasticity.state what is split"
        )


# --- money, time and experience --------------------------------------------------------------------------------------


@value_object
class StepsDiffer(RuledOut):
    """Throughput is in steps a second, and with batch PerChip a step has another number of samples at this size."""

    reason = RejectionReason.STEPS_DIFFER
    chips: int
    """As many as the placement has."""

    def text(self) -> str:
        return (
            f"a step on {chips(self.chips)} has another number of samples, which is not seen: set "
            "spec.progress.samplesPerStep"
        )


@value_object
class PriceUnknown(RuledOut):
    """The pool has no price."""

    reason = RejectionReason.PRICE_UNKNOWN
    pool: str
    """Name of the AcceleratorPool."""
    target: str | None
    """The declared target that needs one; None where the objective does."""
    objective: Objective
    """The job's targets.objective."""

    def text(self) -> str:
        target = self.target
        why = f"{target} is set" if target is not None else f"targets.objective is {self.objective}"
        return f"{self.pool} has no price and {why}: set spec.price of the AcceleratorPool"


@value_object
class CurrentPriceUnknown(RuledOut):
    """The pool where the job runs has no price to compare with."""

    reason = RejectionReason.PRICE_UNKNOWN
    pool: str
    """Name of the AcceleratorPool."""

    def text(self) -> str:
        return f"{self.pool}, where the job runs, has no price to compare with: set its spec.price"


@value_object
class Avoided(RuledOut):
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

    def text(self) -> str:
        remaining = self.remaining
        again = "until the spec changes" if remaining is None else f"for another {span(remaining)}"
        where = f"{chips(self.chips)} of {self.pool}"
        found = self.why.partition("; ")[0]
        return f"{where}: tried and left, and not tried again {again}, since {found}"


# --- what is not known -----------------------------------------------------------------------------------------------


@value_object
class SpecificationsMissing(RuledOut):
    """The catalog does not say enough of two chips to compare them."""

    reason = RejectionReason.NOT_PREDICTABLE
    here: str
    """The catalog's key of the chip that the job has."""
    there: str
    """That of the chip that it would have."""

    def text(self) -> str:
        return (
            f"{self.here} and {self.there} lack a common precision or the memory bandwidth in the catalog: add it in "
            "spec.chip of their pools"
        )


_GAPS: Final = {
    Reason.CRASH_LOOP: "the program fails and is started again",
    Reason.TELEMETRY_UNAVAILABLE: "measurements can't be read at the moment; the job runs on as it is",
    Reason.PROFILING_OFF: "profiling.mode is Off, and nothing else measures the pods",
    Reason.NO_TELEMETRY: "nothing was heard from the pods since they started",
    Reason.STALE_TELEMETRY: "the newest measurement is too old to decide on",
    Reason.SHARED_CHIP: "processes of others work on a chip of the job; condition Profiled says how much",
    Reason.SERVER_STAYS: "without a target of time and metrics of the server nothing tells what other chips would do",
    Reason.DEMAND_RECORD_SHORT: "an hour of its requests is to be recorded, and put through the chips of other pools",
    Reason.NO_REQUESTS: "no request came in all that is recorded, which tells nothing of what other chips would do",
    Reason.BATCHES_UNSEEN: "its metrics do not tell how long its batches or tokens take, and so not what others would",
    Reason.PARTIAL_TELEMETRY: "throughput is not measured; condition Profiled says why",
}


@value_object
class ScalingNoBetterKnown(RuledOut):
    """The job left this placement, and how it scales there is not known better than then."""

    reason = RejectionReason.SCALING
    placement: Placement
    """Where the job was, at that size."""

    def text(self) -> str:
        return (
            f"the job was moved away from {place(self.placement)}, and no more is known of "
            "targets.minScalingEfficiency there"
        )


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
    route: str | None = None
    """Why weights of its HTTPRoute can't be written."""

    def text(self) -> str:
        """What is missing to decide by measurements."""
        if self.route is not None:
            return self.route
        if self.reason is Reason.STARTING:
            return f"not all pods run yet{f': {self.blocked}' if self.blocked else ''}"
        if self.queue is not None:
            return f"the job waits for quota of queue {self.queue}"
        if self.revision is not None:
            return f"the profile is still of revision {self.revision}"
        if self.window is not None:
            return f"the step time is not steady yet, or the window of {span(self.window)} is not full"
        if self.heard is not None:
            return f"{self.heard[0]} of {self.heard[1]} pods answer"
        return _GAPS[self.reason]


@value_object
class NotMeasured(RuledOut):
    """Nothing can be predicted while measurements are missing."""

    reason = RejectionReason.NOT_PREDICTABLE
    gap: Gap
    """What is missing."""

    def text(self) -> str:
        return self.gap.text()


# --- the comparison --------------------------------------------------------------------------------------------------


@value_object
class Compared:
    """Worse than staying, or not better enough. The words are those of the comparison with where the job is."""

    reason: ClassVar[RejectionReason]

    objective: Objective
    """What both were compared by."""
    now: float
    """Units of work a second where the job is."""


@value_object
class NotBetter(Compared):
    """Staying is better, or as good."""

    reason = RejectionReason.NOT_BETTER


@value_object
class BelowMinSavings(Compared):
    """Better, by less than adaptation.minSavings."""

    reason = RejectionReason.BELOW_MIN_SAVINGS


@value_object
class Uncertain(Compared):
    """Probably better, and not surely enough."""

    reason = RejectionReason.UNCERTAIN


@value_object
class DoesNotPayBack(Compared):
    """Better, and a restart costs more than it would bring."""

    reason = RejectionReason.DOES_NOT_PAY_BACK


@value_object
class OtherChosen(RuledOut):
    """Another candidate is taken."""

    reason = RejectionReason.NOT_BETTER
    taken: Placement
    """Where the job goes instead."""

    def text(self) -> str:
        return f"ranks after {place(self.taken)}"


@value_object
class NoRoom(RuledOut):
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

    def text(self) -> str:
        selected = " on nodes that the template selects" if self.selected else ""
        there = f"{self.total} in all"
        there += f", {self.growable} more can be added" if self.growable else ""
        return f"{self.pool} has no room for {chips(self.chips)} now{selected} ({there})"


@value_object
class KeptFree(RuledOut):
    """What the pool could give is kept free for an older job that has waited for long."""

    reason = RejectionReason.KEPT_FREE
    pool: str
    """Name of the AcceleratorPool."""
    chips: int
    """As many as the placement has."""

    def text(self) -> str:
        return (
            f"free chips of {self.pool} are kept for an older job, which waits longer than startDeadline: "
            f"{chips(self.chips)} would delay it"
        )


@value_object
class SuspectedPool(RuledOut):
    """Too many of the last moves there were undone; one job at a time tries it."""

    reason = RejectionReason.SUSPECTED
    pool: str
    """Name of the AcceleratorPool."""

    def text(self) -> str:
        return f"too many of the last moves to {self.pool} had to be undone: one job at a time tries it"


Rejection = RuledOut | Compared
