"""The way back: what it costs to hold what a move leaves until its verdict, and what a return is worth."""

from __future__ import annotations

import math

from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.judge.verdict import windows_until_settled
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.work.registry import work_of
from rightpool.profiles.steadiness import pace

# The mean of the positive half of a standard normal.
_HALF_NORMAL = math.sqrt(2.0 / math.pi)


def price_of_return(job: Job, evaluated: Evaluated, candidate: Candidate) -> tuple[float, float, float]:
    """Dollars that holding the chips costs, dollars that a way back is worth, and seconds until the verdict.

    Held are the chips that the target does not take over, for a restart, a warm-up of a window, the slow start that the
    job is known to have, and as many windows as it takes to judge a move of a job that varies like this one. A return
    is worth what a bad outcome would lose over the horizon of the job: its probability, times its mean size by the
    spread of the prediction, times what the job's hours are worth.
    """
    revision = job.state.revision
    assert revision is not None
    here = revision.placement
    there = candidate.placement
    kept = here.chips - (there.chips if there.pool == here.pool else 0)
    seen = pace(job.observed.variation, revision.revision, unit_of(job))
    before = 1 if seen is None else seen.windows
    windows = windows_until_settled(job.observed.variation, before, candidate.saving or 0.0)
    variation, window = job.observed.variation, job.spec.profiling.window.total_seconds()
    slow = 0 if variation is None or variation.slow_start is None else variation.slow_start.in_windows(window)
    seconds = work_of(job.spec).pause_seconds(job) + (1 + slow + windows) * window
    current = evaluated.current()
    hourly = None if current is None else current.cost_per_hour
    rest = evaluated.outlook
    if rest is None or kept <= 0 or hourly is None or candidate.throughput is None:
        return 0.0, 0.0, seconds
    cost = hourly * kept / here.chips * seconds / HOUR
    worse = 1.0 - (1.0 if candidate.probability is None else candidate.probability)
    worth = worse * _HALF_NORMAL * candidate.throughput.sd * evaluated.hour * rest.horizon / HOUR
    return cost, worth, seconds
