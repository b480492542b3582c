"""Forecast: how far a job is, when it is done, what is left of its time and money, and what it will probably miss."""

from __future__ import annotations

import math
from typing import Final

from rightpool.api.estimate import Estimate
from rightpool.api.units import HOUR, LAST_MOMENT
from rightpool.api.value_object import value_object
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.registry import work_of

SURE: Final = 0.8
"""Probability from which on a target is said to be missed in the end."""


@value_object
class Forecast:
    """As of one moment. What is not declared or not known is None."""

    progress: float | None = None
    """Share of `progress.totalSamples` that is done, 0-1."""

    finish_at: float | None = None
    """Unix seconds, at the present rate. None also where that is after the year 9999."""

    time_left: float | None = None
    """Seconds to the deadline; negative after it."""

    late: float | None = None
    """Probability that the job is done after its deadline."""

    money_left: float | None = None
    """Dollars of the budget; negative where it is exceeded."""

    cost_left: float | None = None
    """Dollars that the rest of the job costs at the present rate and price."""

    over: float | None = None
    """Probability that the job costs more than its budget."""


def forecast(job: Job, rate: Estimate | None, now: float) -> Forecast:
    """The rest of the job where it is. rate: units of work a second there; None where it is not known."""
    targets, extent = job.spec.targets, work_of(job.spec).extent(job, now)
    money = None if targets.budget is None else float(targets.budget) - job.state.account.spent_by(now)
    time = None if targets.deadline is None else targets.deadline - now
    if job.state.finished is not None or extent is None or rate is None or rate.median <= 0.0:
        late = None if time is None or time > 0.0 or job.state.finished else 1.0
        over = None if money is None or money >= 0.0 else 1.0
        return Forecast(time_left=time, late=late, money_left=money, over=over)
    left = extent.left
    price = None if job.state.revision is None else job.state.revision.cost_per_hour
    seconds = left / rate.median
    cost = None if price is None else price * seconds / HOUR
    over = None
    if money is not None and money <= 0.0:
        over = 1.0
    elif money is not None and price is not None:
        over = _misses(rate, price / HOUR * left / money)
    return Forecast(
        progress=min(extent.done / extent.whole, 1.0),
        finish_at=now + seconds if now + seconds < LAST_MOMENT else None,
        time_left=time,
        late=None if time is None else _misses(rate, math.inf if time <= 0.0 else left / time),
        money_left=money,
        cost_left=cost,
        over=over,
    )


def _misses(rate: Estimate, needed: float) -> float:
    """P(less throughput than needed)."""
    return 1.0 if math.isinf(needed) else 1.0 - rate.probability_above(needed)
