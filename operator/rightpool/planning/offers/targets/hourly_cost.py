"""The target of what an hour may cost."""

from __future__ import annotations

from rightpool.api.conditions import Reason
from rightpool.api.value_object import value_object
from rightpool.api.wording import dollars
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, TargetMissed
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.prediction.columns import Bools, Floats


@value_object
class HourTooDear(TargetMissed):
    """An hour costs more than targets.maxCostPerHour."""

    reason = RejectionReason.COST_PER_HOUR
    cost: float
    """Dollars an hour."""
    most: float
    """Dollars an hour."""

    def text(self) -> str:
        """Both an hour."""
        return f"costs {dollars(self.cost)} an hour, above targets.maxCostPerHour {dollars(self.most)}"


class HourlyCost(JobTarget):
    """At most so many dollars an hour."""

    field = "max_cost_per_hour"
    reason = RejectionReason.COST_PER_HOUR
    missed = Reason.MAX_COST_PER_HOUR_EXCEEDED
    unreachable = Reason.COST_TARGET_UNREACHABLE
    in_dollars = of_cost = True
    by_rate = False

    def misses(self, rows: Offers) -> Bools:
        """Where an hour costs more."""
        return rows.price > rows.limit(self.field)

    def relaxed(self, here: Offers) -> Floats:
        """What an hour costs now."""
        return here.price

    def level(self, rows: Offers, here: Offers) -> Floats:
        """By the prices."""
        return rows.price / here.price[rows.job]

    def explain(self, offer: OneOffer) -> TargetMissed:
        """Both in dollars."""
        return HourTooDear(offer.price, offer.limit(self.field))

    def before_start(self, limit: float, price: float) -> TargetMissed | None:
        """The price alone says it."""
        return HourTooDear(price, limit) if price > limit else None

    def missed_at(self, job: Job, current: Candidate | None) -> TargetMissed | None:
        """By what the job pays, whether it was measured or not."""
        found = super().missed_at(job, current)
        most, revision = job.spec.targets.max_cost_per_hour, job.state.revision
        price = None if revision is None else revision.cost_per_hour
        if found is not None or most is None or price is None:
            return found
        return HourTooDear(price, float(most)) if price > float(most) else None
