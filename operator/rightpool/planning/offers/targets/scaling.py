"""The target of scaling."""

from __future__ import annotations

from rightpool.api.conditions import Reason
from rightpool.api.value_object import value_object
from rightpool.api.wording import share
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, TargetMissed
from rightpool.planning.offers.targets.target import SAME, JobTarget, known
from rightpool.prediction.columns import Bools, Floats


@value_object
class ScalingPoor(TargetMissed):
    """The job scales worse than targets.minScalingEfficiency."""

    reason = RejectionReason.SCALING
    efficiency: float
    """Throughput over chips times the throughput of one chip."""
    least: float
    """The target."""
    measured: bool
    """Whether throughput was measured here; else it is predicted."""

    def text(self) -> str:
        """Both as shares."""
        return (
            f"{known(self.measured)}: {share(self.efficiency)} of perfect scaling, below targets.minScalingEfficiency "
            f"{share(self.least)}: fewer chips keep more"
        )


class Scaling(JobTarget):
    """At least such a share of perfect scaling."""

    field = "min_scaling_efficiency"
    reason = RejectionReason.SCALING
    missed = Reason.MIN_SCALING_EFFICIENCY_MISSED
    unreachable = Reason.POOR_SCALING
    of_efficiency = True

    def misses(self, rows: Offers) -> Bools:
        """Where it is less at the median."""
        return rows.efficiency < rows.limit(self.field)

    def relaxed(self, here: Offers) -> Floats:
        """That of now, and a little less."""
        return here.efficiency / (1.0 + SAME)

    def explain(self, offer: OneOffer) -> TargetMissed:
        """Both as shares."""
        return ScalingPoor(offer.efficiency, offer.limit(self.field), measured=offer.current)

    def missed_at(self, job: Job, current: Candidate | None) -> TargetMissed | None:
        """By what is known of the place, whatever else rules it out."""
        least = job.spec.targets.min_scaling_efficiency
        found = None if current is None else current.scaling_efficiency
        if least is None or found is None or found >= float(least):
            return None
        return ScalingPoor(found, float(least), measured=True)
