"""What the largest size that a job was seen on has brought, against the second largest.

What chips wait for each other, for a crowded network or for the loader does not become less with more of them. So the
next doubling brings no more than the last one did, unless the last one was the first over other links.
"""

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.features import Features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations


@value_object
class LastDoubling:
    """An entry a job; NaN where it was seen on one size alone."""

    gain: Floats
    """Log of the ratio of the two rates, for each doubling."""
    doublings: Floats
    """Between the two sizes."""
    bounds: Bools
    """Whether it limits what the next doubling brings: both sizes use the same links."""

    @classmethod
    def unknown(cls, jobs: int) -> "LastDoubling":
        """Of so many jobs that were seen on one size alone."""
        return cls(np.full(jobs, np.nan), np.full(jobs, np.nan), np.zeros(jobs, dtype=np.bool_))

    @classmethod
    def of(cls, jobs: Features, machines: Machines, rows: Destinations, most: Floats) -> "LastDoubling":
        """rows: other sizes that jobs were measured on, on the chips that they have. most: log2 of the most chips."""
        home, count = jobs.pool[rows.job], len(most)
        same = (machines.inside[rows.pool] == machines.inside[home]) & (
            machines.between[rows.pool] == machines.between[home]
        )
        own = np.unique(rows.job)
        job = np.concatenate((rows.job[same], own))
        size = np.log2(np.concatenate((rows.chips[same], jobs.chips[own])))
        rate = np.log(np.concatenate((rows.seen[same], jobs.rate[own])))
        used = np.concatenate((_links(rows.chips, rows.groups)[same], _links(jobs.chips, jobs.groups)[own]))
        below = size < most[job]
        second = np.full(count, -np.inf)
        np.maximum.at(second, job[below], size[below])
        largest, next_largest = ~below, size == second[job]
        doublings = np.where(np.isinf(second), np.nan, most - second)
        gain = (_mean(job, rate, largest, count) - _mean(job, rate, next_largest, count)) / doublings
        alike = _mean(job, used, largest, count) == _mean(job, used, next_largest, count)
        return cls(gain, doublings, alike & ~np.isnan(gain))


def _links(chips: Ints, groups: Ints) -> Floats:
    """What a size communicates over, as a number: nothing, links within a group, links between groups."""
    return np.where(groups > 1, 2.0, np.where(chips > 1, 1.0, 0.0))


def _mean(job: Ints, values: Floats, chosen: Bools, jobs: int) -> Floats:
    """Of the chosen values of each job; NaN where there are none."""
    total = np.bincount(job[chosen], weights=values[chosen], minlength=jobs)
    mean: Floats = total / np.bincount(job[chosen], minlength=jobs)
    return mean
