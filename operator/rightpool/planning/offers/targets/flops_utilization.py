"""The target of model FLOPs utilization."""

from __future__ import annotations

from rightpool.api.conditions import Reason
from rightpool.api.value_object import value_object
from rightpool.api.wording import share
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.flops_texts import unknown_flops_text
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, TargetMissed
from rightpool.planning.offers.targets.target import SAME, JobTarget, known
from rightpool.prediction.columns import Floats


@value_object
class FlopsUtilizationLow(TargetMissed):
    """Chips do less of the model's FLOPs than targets.minModelFlopsUtilization."""

    reason = RejectionReason.FLOPS_UTILIZATION
    utilization: float
    """Share of their peak, 0 to 1."""
    least: float
    """The target."""
    measured: bool
    """Whether throughput was measured here; else it is predicted."""

    def text(self) -> str:
        """Both as shares."""
        return (
            f"{known(self.measured)}: {share(self.utilization)} of the chips' peak FLOP/s, below "
            f"targets.minModelFlopsUtilization {share(self.least)}"
        )


class FlopsUtilization(JobTarget):
    """At least such a share of the chips' peak."""

    field = "min_model_flops_utilization"
    reason = RejectionReason.FLOPS_UTILIZATION
    missed = Reason.MIN_FLOPS_UTILIZATION_MISSED
    unreachable = Reason.LOW_FLOPS_UTILIZATION
    of_efficiency = True

    def needed(self, rows: Offers) -> Floats:
        """That share of the rate at the chips' peak."""
        return rows.limit(self.field) * rows.full

    def relaxed(self, here: Offers) -> Floats:
        """That of now, and a little less."""
        return here.rate / here.full / (1.0 + SAME)

    def explain(self, offer: OneOffer) -> TargetMissed:
        """Both as shares."""
        return FlopsUtilizationLow(offer.rate / offer.full, offer.limit(self.field), measured=offer.current)

    def unknown_at(self, job: Job, current: Candidate | None) -> tuple[Reason, str] | None:
        """FLOPs, precision or the chips' peak may not be known."""
        if current is not None and current.flops_utilization is not None:
            return None
        return Reason.FLOPS_UNKNOWN, unknown_flops_text(job, current)
