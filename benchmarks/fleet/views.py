"""Views: what the planner knows of what the jobs of a trace would do, and what of it the jobs themselves know.

Every view knows how much work a job has left. The true one knows the rates; the others go by models of what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from benchmarks.fleet.application import Application
from benchmarks.fleet.own_model import OwnModel
from benchmarks.fleet.published import CLUSTER
from benchmarks.fleet.work import BestBatch, OwnBatch
from rightpool.api.placement import Placement
from rightpool.prediction.columns import Floats
from rightpool.simulation.rounds import RoundJob

# Where a job has been on several kinds of chips, Sia judges others by the first of these.
_FIRST: Final = ("aws", "dgx-ext", "rtx")


class Outlooks(NamedTuple):
    """Of each placement that is possible."""

    rates: Floats
    """Progress a second; NaN where it is not known."""
    left: Floats
    """Seconds until the job's end."""


View = Callable[[RoundJob], Outlooks]


def true_rates(job: RoundJob) -> Outlooks:
    """With the best batch, in this epoch and in those that come."""
    assert isinstance(job.work, BestBatch)
    application = job.work.application
    rates = application.best_rates[:, job.epoch]
    left = (application.ends[job.epoch] - job.progress) / rates + application.rest[:, job.epoch + 1]
    return Outlooks(rates, left)


@dataclass(slots=True)
class ModelView:
    """By the models that jobs fit to their steps. Before there is one a job is known on one chip of each kind."""

    doubling: bool = False
    """Whether a job gets at most twice the chips that it has been on, as in Sia."""
    _known: dict[tuple[tuple[float, ...], tuple[float, float], Placement], float] = field(default_factory=dict)

    def __call__(self, job: RoundJob) -> Outlooks:
        """Of this job."""
        work = job.work
        assert isinstance(work, OwnBatch)
        application, gradient = work.application, work.gradient(job.epoch)
        learned = [pool for pool in _FIRST if pool in work.models]
        if gradient is None or not learned:
            rates = [application.one_chip[place.pool] if place.chips == 1 else math.nan for place in application.places]
        else:
            most = _twice(work) if self.doubling else math.inf
            rates = [
                math.nan
                if place.chips > most and place != job.place
                else self._goodput(application, work.models, learned[0], gradient, place)
                for place in application.places
            ]
        found = np.array(rates) / application.smallest / application.slowdown
        found[~(found > 0.0)] = math.nan
        return Outlooks(found, (application.ends[-1] - job.progress) / found)

    def _goodput(
        self,
        application: Application,
        models: dict[str, OwnModel],
        first: str,
        gradient: tuple[float, float],
        place: Placement,
    ) -> float:
        """Samples a second, of those that a batch of the smallest size would need for the same."""
        if place.pool in models:
            return self._by(application, models[place.pool], gradient, place)
        alike = Placement(first, place.chips, math.ceil(place.chips / CLUSTER[first].per_node))
        ratio = application.one_chip[place.pool] / application.one_chip[first]
        return ratio * self._by(application, models[first], gradient, alike)

    def _by(self, application: Application, model: OwnModel, gradient: tuple[float, float], place: Placement) -> float:
        key = model.parameters, gradient, place
        if key not in self._known:
            choices, best = application.choices(place), math.nan
            if choices is not None:
                atomic, accumulations, possible = choices
                goodput = model.goodput(place, atomic, accumulations, *gradient, application.smallest)
                best = float((goodput * possible).max())
            self._known[key] = best
        return self._known[key]


def _twice(work: OwnBatch) -> int:
    """The chips of twice the largest placement that it has been on, on that kind of chips which allows most."""
    seen = {pool: max((one.chips for one in model.seen), default=0) for pool, model in work.models.items()}
    largest = work.application.largest
    return max(min(max(2 * seen.get(pool, 0), 1), largest // work.application.least[pool]) for pool in CLUSTER)
