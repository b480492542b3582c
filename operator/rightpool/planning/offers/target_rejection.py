"""Rejections by targets: what the job declares that it may cost, and how fast and well used it must be."""

from dataclasses import dataclass

from rightpool.api.placement import Placement
from rightpool.api.wording import dollars, number, place, share, span
from rightpool.planning.offers.rejection import RejectionReason, RuledOut


@dataclass(frozen=True, slots=True)
class HourTooDear(RuledOut):
    """An hour costs more than targets.maxCostPerHour."""

    reason = RejectionReason.COST_PER_HOUR
    cost: float
    """Dollars an hour."""
    most: float
    """Dollars an hour."""

    def text(self) -> str:
        return f"costs {dollars(self.cost)} an hour, above targets.maxCostPerHour {dollars(self.most)}"


@dataclass(frozen=True, slots=True)
class SamplesTooDear(RuledOut):
    """Work costs more than targets.maxCostPerMillionSamples."""

    reason = RejectionReason.COST_PER_SAMPLE
    cost: float
    """Dollars per million samples."""
    most: float
    """Dollars per million samples."""
    measured: bool
    """Whether the cost was measured; else it is predicted."""

    def text(self) -> str:
        most = f"targets.maxCostPerMillionSamples {dollars(self.most)}"
        return f"{_known(self.measured)}: {dollars(self.cost)} per million samples, above {most}"


@dataclass(frozen=True, slots=True)
class ScalingPoor(RuledOut):
    """The job scales worse than targets.minScalingEfficiency."""

    reason = RejectionReason.SCALING
    efficiency: float
    """Throughput over chips times the throughput of one chip."""
    least: float
    """The target."""
    measured: bool
    """Whether throughput was measured here; else it is predicted."""

    def text(self) -> str:
        return (
            f"{_known(self.measured)}: {share(self.efficiency)} of perfect scaling, below "
            f"targets.minScalingEfficiency {share(self.least)}: fewer chips keep more"
        )


@dataclass(frozen=True, slots=True)
class FlopsUtilizationLow(RuledOut):
    """Chips do less of the model's FLOPs than targets.minModelFlopsUtilization."""

    reason = RejectionReason.FLOPS_UTILIZATION
    utilization: float
    """Share of their peak, 0 to 1."""
    least: float
    """The target."""
    measured: bool
    """Whether throughput was measured here; else it is predicted."""

    def text(self) -> str:
        return (
            f"{_known(self.measured)}: {share(self.utilization)} of the chips' peak FLOP/s, below "
            f"targets.minModelFlopsUtilization {share(self.least)}"
        )


@dataclass(frozen=True, slots=True)
class ScalingNoBetterKnown(RuledOut):
    """The job left this placement, and how it scales there is not known better than then."""

    reason = RejectionReason.SCALING
    placement: Placement
    """Where the job was, at that size."""

    def text(self) -> str:
        return (
            f"the job was moved away from {place(self.placement)}, and nothing new is known since then about "
            "targets.minScalingEfficiency there"
        )


@dataclass(frozen=True, slots=True)
class DeadlineMissed(RuledOut):
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

    def text(self) -> str:
        left = f"is in {span(self.time_left)}" if self.time_left > 0.0 else "has passed"
        rest = f"the rest takes {span(self.rest)}, and targets.deadline {left}"
        return f"{_known(self.measured)}: {number(self.rate)} samples/s: {rest}"


@dataclass(frozen=True, slots=True)
class BudgetShort(RuledOut):
    """What is left of targets.budget does not pay the rest."""

    reason = RejectionReason.BUDGET
    rest: float | None
    """Dollars that the rest costs; None where the work is not known."""
    left: float
    """Dollars of the budget."""

    def text(self) -> str:
        cost = self.rest
        needs = "nothing may be spent any more" if cost is None else f"the rest costs {dollars(cost)}"
        return f"{needs}, and {dollars(self.left)} of targets.budget are left"


@dataclass(frozen=True, slots=True)
class BudgetSpent(RuledOut):
    """targets.budget is spent."""

    reason = RejectionReason.BUDGET
    budget: float
    """Dollars."""

    def text(self) -> str:
        return f"targets.budget {dollars(self.budget)} is spent: raise it"


def _known(measured: bool) -> str:
    return "measured" if measured else "predicted"
