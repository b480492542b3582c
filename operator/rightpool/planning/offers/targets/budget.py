"""The target of what a job may cost from beginning to end."""

from __future__ import annotations

import math

import numpy as np

from rightpool.api.conditions import Reason
from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.api.wording import dollars
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, RuledOut, TargetMissed
from rightpool.planning.offers.targets.target import SAME, JobTarget
from rightpool.planning.work.forecast import Forecast
from rightpool.planning.work.outlook import Outlook
from rightpool.prediction.columns import Floats


@value_object
class BudgetShort(TargetMissed):
    """What is left of targets.budget does not pay the rest."""

    reason = RejectionReason.BUDGET
    rest: float | None
    """Dollars that the rest costs; None where the work is not known."""
    left: float
    """Dollars of the budget."""

    def text(self) -> str:
        """What the rest costs, against what is left."""
        needs = "nothing may be spent any more" if self.rest is None else f"the rest costs {dollars(self.rest)}"
        return f"{needs}, and {dollars(self.left)} of targets.budget are left"


@value_object
class BudgetSpent(RuledOut):
    """targets.budget is spent."""

    reason = RejectionReason.BUDGET
    budget: float
    """Dollars."""

    def text(self) -> str:
        """What there was."""
        return f"targets.budget {dollars(self.budget)} is spent: raise it"


class Budget(JobTarget):
    """Done for so many dollars more."""

    field = "budget"
    reason = RejectionReason.BUDGET
    missed = Reason.BUDGET_EXCEEDED
    at_risk = Reason.BUDGET_AT_RISK
    unreachable = Reason.OVER_BUDGET
    yardstick = Yardstick.COST
    in_dollars = of_cost = True

    def limit(self, job: Job, outlook: Outlook) -> float:
        """Dollars that are left."""
        return outlook.budget_left

    def needed(self, rows: Offers) -> Floats:
        """What is left of the work, in the time that the dollars pay which the restart leaves."""
        left, price = rows.numbers.work_left[rows.job], rows.price
        money = rows.limit(self.field) - price * np.where(np.isnan(left), 0.0, rows.restart) / HOUR
        return np.where(money <= 0.0, np.inf, price / HOUR * left / money)

    def relaxed(self, here: Offers) -> Floats:
        """What the rest costs here, and a little more."""
        rest = here.numbers.work_left / here.rate
        money = here.price * (rest * (1.0 + SAME) + here.numbers.restart) / HOUR
        return np.where(np.isnan(money), np.inf, money)

    def explain(self, offer: OneOffer) -> TargetMissed:
        """What the rest costs, and the dollars that are left."""
        rest = offer.price * offer.rest / HOUR
        return BudgetShort(None if math.isnan(rest) else rest, offer.limit(self.field))

    def bars_start(self, job: Job, now: float) -> RuledOut | None:
        """Where it is spent."""
        budget = float(job.spec.targets.budget or 0.0)
        return BudgetSpent(budget) if job.state.account.spent_by(now) >= budget else None

    def over(self, rest: Forecast) -> bool:
        """Whether more is spent."""
        return rest.money_left is not None and rest.money_left < 0.0

    def chance(self, rest: Forecast) -> float | None:
        """How likely the job costs more."""
        return rest.over
