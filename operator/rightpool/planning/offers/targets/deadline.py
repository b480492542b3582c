"""The target of when a job must be done."""

from __future__ import annotations

import numpy as np

from rightpool.api.conditions import Reason
from rightpool.api.value_object import value_object
from rightpool.api.wording import number, span
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, TargetMissed
from rightpool.planning.offers.targets.target import SAME, JobTarget, known
from rightpool.planning.work.forecast import Forecast
from rightpool.planning.work.outlook import Outlook
from rightpool.prediction.columns import Floats


@value_object
class DeadlineMissed(TargetMissed):
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
        """How long the rest takes, against the time that is left."""
        left = f"is in {span(self.time_left)}" if self.time_left > 0.0 else "has passed"
        rest = f"the rest takes {span(self.rest)}, and targets.deadline {left}"
        return f"{known(self.measured)}: {number(self.rate)} samples/s: {rest}"


class Deadline(JobTarget):
    """Done within so many seconds from now."""

    field = "deadline"
    reason = RejectionReason.DEADLINE
    missed = Reason.DEADLINE_MISSED
    at_risk = Reason.DEADLINE_AT_RISK
    unreachable = Reason.DEADLINE_UNREACHABLE
    yardstick = Yardstick.TIME
    kept = 0.9  # nothing is risked for money

    def limit(self, job: Job, outlook: Outlook) -> float:
        """Seconds that are left."""
        return outlook.time_left

    def needed(self, rows: Offers) -> Floats:
        """What is left of the work, in the time that is left after the restart."""
        time = rows.limit(self.field) - rows.restart
        left = rows.numbers.work_left[rows.job]
        return np.where((time <= 0.0) & ~np.isnan(left), np.inf, left / time)

    def relaxed(self, here: Offers) -> Floats:
        """As long as it takes here, and a little longer."""
        return here.numbers.work_left / here.rate * (1.0 + SAME) + here.numbers.restart

    def level(self, rows: Offers, here: Offers) -> Floats:
        """By the time that the rest takes. One that is over is not missed by less anywhere."""
        return np.where(rows.limit(self.field) > 0.0, super().level(rows, here), np.nan)

    def explain(self, offer: OneOffer) -> TargetMissed:
        """How long the rest takes, and the time that is left."""
        return DeadlineMissed(offer.rate, offer.rest, offer.limit(self.field), measured=offer.current)

    def over(self, rest: Forecast) -> bool:
        """Whether that moment has passed."""
        return rest.time_left is not None and rest.time_left < 0.0

    def chance(self, rest: Forecast) -> float | None:
        """How likely the job is done later."""
        return rest.late
