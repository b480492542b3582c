"""A target: what a user may ask of a job beside its objective, with all that is to be known of it.

Where it is missed, where it holds surely enough, what is asked instead where nothing holds it, and what is said of it.
Gates, repairs, verdicts, conditions and messages go over the registry, and none names a target.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Final

import numpy as np
from pydantic.alias_generators import to_camel

from rightpool.api.conditions import Reason
from rightpool.api.targets import Targets
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.offers import Offers, OneOffer
from rightpool.planning.offers.rejection import RejectionReason, RuledOut, TargetMissed
from rightpool.planning.work.forecast import Forecast
from rightpool.planning.work.outlook import Outlook
from rightpool.prediction.columns import Bools, Floats
from rightpool.prediction.cost import probability_above

# Elsewhere a target has to hold at the median; what repairs one must do so more surely (repair.py).
EVEN: Final = 0.5
# What a placement misses a target by more than staying does by less than this share is taken for the same.
SAME: Final = 0.05


class JobTarget(ABC):
    """What one field of `spec.targets` asks for."""

    field: ClassVar[str]
    """Its name in the model of `spec.targets`."""
    reason: ClassVar[RejectionReason]
    """What placements that miss it are rejected for."""
    missed: ClassVar[Reason]
    """Why a job is moved for it, and what TargetsMet says where it is missed."""
    at_risk: ClassVar[Reason | None] = None
    """What TargetsMet says where it will probably be missed in the end; None where it is missed at once or never."""
    unreachable: ClassVar[Reason]
    """Why a job stays where it is missed."""
    yardstick: ClassVar[Yardstick] = Yardstick.NONE
    """What judges a move for it. None: whether it holds is certain before the move."""
    in_dollars: ClassVar[bool] = False
    """Whether a placement without a price can't be judged by it."""
    of_cost: ClassVar[bool] = False
    """Whether a job that misses it is not CostEfficient."""
    of_efficiency: ClassVar[bool] = False
    """Whether a job that misses it is not Efficient."""
    by_rate: ClassVar[bool] = True
    """Whether it takes a rate to tell where it holds; else placements are judged by it before anything is measured."""
    kept: ClassVar[float] = EVEN
    """How likely it has to hold elsewhere where it holds now."""

    @property
    def name(self) -> str:
        """As users write it."""
        return f"targets.{to_camel(self.field)}"

    def declared(self, targets: Targets) -> bool:
        """Whether the user asks for it."""
        return getattr(targets, self.field) is not None

    def limit(self, job: Job, outlook: Outlook) -> float:
        """The number that it is held to at this moment; NaN where it is not declared."""
        value = getattr(job.spec.targets, self.field)
        return math.nan if value is None else float(value)

    # --- placements, in columns --------------------------------------------------------------------------------------

    def needed(self, rows: Offers) -> Floats:
        """The units of work a second in the long run that hold it: infinitely many where nothing does, NaN where none
        are asked for."""
        return np.full(len(rows.job), np.nan)

    def misses(self, rows: Offers) -> Bools:
        """Where it holds with less than `rows.least`."""
        return self._likely(rows) < rows.least

    def holds(self, rows: Offers) -> Floats:
        """How likely it holds on rows that do not miss it."""
        return np.ones(len(rows.job)) if self.yardstick is Yardstick.NONE else self._likely(rows)

    def _likely(self, rows: Offers) -> Floats:
        """How likely the rate is what is needed; 1 where that, or the rate, is not known."""
        needed, likely = self.needed(rows), np.ones(len(rows.job))
        asked = np.flatnonzero((needed > 0.0) & ~np.isnan(rows.rate))
        likely[asked] = probability_above(rows.rate[asked], rows.sd[asked], needed[asked])
        return likely

    @abstractmethod
    def relaxed(self, here: Offers) -> Floats:
        """The limit at which it holds where jobs are, one row a job."""

    def level(self, rows: Offers, here: Offers) -> Floats:
        """By how much rows miss it ÷ by how much staying does; NaN where nothing comes nearer to it."""
        own, now = here.rate[rows.job], here.price[rows.job]
        if self.yardstick is Yardstick.TIME:
            return own / rows.rate
        if self.yardstick is Yardstick.COST:
            return (rows.price / rows.rate) / (now / own)
        return np.full(len(rows.job), np.nan)

    # --- one job -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def explain(self, offer: OneOffer) -> TargetMissed:
        """Why a placement misses it."""

    def before_start(self, limit: float, price: float) -> TargetMissed | None:
        """Why a job of which nothing was measured does not start at so many dollars an hour, where the limit is
        declared."""
        return None

    def bars_start(self, job: Job, now: float) -> RuledOut | None:
        """Why a job that declares it is not started anywhere."""
        return None

    def missed_at(self, job: Job, current: Candidate | None) -> TargetMissed | None:
        """Why it is missed where the job is; None where it is not, or where that is not known."""
        found = None if current is None else current.rejection
        return found if isinstance(found, TargetMissed) and found.reason is self.reason else None

    def unknown_at(self, job: Job, current: Candidate | None) -> tuple[Reason, str] | None:
        """Why it is not known whether it holds where a job was measured, in a word and as a sentence; None where it
        is."""
        return None

    def over(self, rest: Forecast) -> bool:
        """Whether it is missed for good, whatever is done."""
        return False

    def chance(self, rest: Forecast) -> float | None:
        """How likely it will be missed in the end; None where that is not known."""
        return None


def known(measured: bool) -> str:
    """How a number is known, in a word."""
    return "measured" if measured else "predicted"
