"""The target of what a million samples may cost."""

from __future__ import annotations

import numpy as np

from rightpool.api.conditions import Reason
from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.api.wording import dollars
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, TargetMissed
from rightpool.planning.offers.targets.target import SAME, JobTarget, known
from rightpool.prediction.columns import Floats
from rightpool.prediction.cost import MILLION


@value_object
class SamplesTooDear(TargetMissed):
    """Work costs more than targets.maxCostPerMillionSamples."""

    reason = RejectionReason.COST_PER_SAMPLE
    cost: float
    """Dollars per million samples."""
    most: float
    """Dollars per million samples."""
    measured: bool
    """Whether the cost was measured; else it is predicted."""

    def text(self) -> str:
        """Both per million."""
        most = f"targets.maxCostPerMillionSamples {dollars(self.most)}"
        return f"{known(self.measured)}: {dollars(self.cost)} per million samples, above {most}"


class SampleCost(JobTarget):
    """At most so many dollars for a million samples."""

    field = "max_cost_per_million_samples"
    reason = RejectionReason.COST_PER_SAMPLE
    missed = Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED
    unreachable = Reason.COST_TARGET_UNREACHABLE
    yardstick = Yardstick.COST
    in_dollars = of_cost = True

    def needed(self, rows: Offers) -> Floats:
        """What the price pays for; at a limit of nothing no rate is enough, unless the chips cost nothing."""
        limit = rows.limit(self.field)
        return np.where(rows.price > 0.0, rows.price / HOUR * MILLION / np.maximum(limit, 0.0), limit * 0.0)

    def relaxed(self, here: Offers) -> Floats:
        """What they cost now, and a little more."""
        return here.cost * (1.0 + SAME)

    def explain(self, offer: OneOffer) -> TargetMissed:
        """Both in dollars."""
        return SamplesTooDear(offer.cost, offer.limit(self.field), measured=offer.current)
