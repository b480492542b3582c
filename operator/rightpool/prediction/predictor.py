"""The interface of every model of throughput: features of jobs and targets in columns, predictions in columns.

A model is one implementation of `Predictor`, passed in where the operator, the command line and the benchmarks are put
together. A single job is a fleet of one.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import IntEnum
from typing import Protocol

import numpy as np

from rightpool.api.estimate import Estimate, Loadings
from rightpool.api.placement import Placement
from rightpool.api.premise import Premise
from rightpool.api.value_object import value_object
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.columns import Bools, Codes, Floats, Ints
from rightpool.prediction.features import Features, PastRates
from rightpool.prediction.machines import Layout, Machines

Describe = Callable[[int], tuple[tuple[Premise, ...], Loadings]]


class Missing(IntEnum):
    """What a prediction lacks. The numbers are those of the column `Prediction.missing`."""

    NOTHING = 0
    PROFILE = 1
    THROUGHPUT = 2
    SPECIFICATIONS = 3  # no precision in common in the catalog, or no memory bandwidth


class Origin(IntEnum):
    """Where a rate is from. The numbers are those of the column `Prediction.origin`."""

    PREDICTED = 0
    MEASURED_NOW = 1
    MEASURED_BEFORE = 2
    MEASURED_IN_TRIAL = 3  # the last time; no column has it


ORIGINS = tuple(Origin)


@value_object
class Destinations:
    """What is asked for, a row for each job and placement."""

    job: Ints
    """A place among the features."""
    pool: Ints
    """A place among the machines."""
    chips: Ints
    """How many."""
    per_group: Ints
    """Chips that share a fast link."""
    groups: Ints
    """How many groups of such chips."""
    current: Bools
    """Whether this is where the job's profile was taken."""
    seen: Floats
    """Throughput that it would do there by how it did there before; NaN where it was not measured there."""
    seen_sd: Floats
    """Standard deviation of the log of that, against its rate now."""
    other_program: Bools
    """Whether another program runs there than the one that was measured, so that its precision is not known."""

    @classmethod
    def of(
        cls, rows: Sequence[tuple[int, Placement]], machines: Machines, current: Sequence[bool] | None = None
    ) -> "Destinations":
        """Rows of (job, placement) that were never measured."""
        pools = [machines.index[placement.pool] for _, placement in rows]
        layouts = [Layout.of(placement, machines.pools[pool]) for (_, placement), pool in zip(rows, pools, strict=True)]
        return cls(
            job=np.array([job for job, _ in rows], dtype=np.int64),
            pool=np.array(pools, dtype=np.int64),
            chips=np.array([placement.chips for _, placement in rows], dtype=np.int64),
            per_group=np.array([layout.per_group for layout in layouts], dtype=np.int64),
            groups=np.array([layout.groups for layout in layouts], dtype=np.int64),
            current=np.array([False] * len(rows) if current is None else current, dtype=np.bool_),
            seen=np.full(len(rows), np.nan),
            seen_sd=np.full(len(rows), np.nan),
            other_program=np.zeros(len(rows), dtype=np.bool_),
        )

    @classmethod
    def measured(cls, seen: PastRates, which: Ints) -> "Destinations":
        """Where jobs were measured, by place among what was seen."""
        return cls(
            job=seen.job[which],
            pool=seen.pool[which],
            chips=seen.chips[which],
            per_group=seen.per_group[which],
            groups=seen.groups[which],
            current=np.zeros(len(which), dtype=np.bool_),
            seen=seen.rate[which],
            seen_sd=np.zeros(len(which)),
            other_program=np.zeros(len(which), dtype=np.bool_),
        )

    def take(self, chosen: Ints) -> "Destinations":
        """These rows alone."""
        return Destinations(*(getattr(self, column.name)[chosen] for column in fields(self)))


@value_object
class Prediction:
    """Units of work a second on every target, lognormal. NaN where `missing` says why."""

    median: Floats
    """Units of work a second; the mean over the window where it was measured."""
    sd: Floats
    """Standard deviation of the logarithm."""
    shared: Floats
    """Covariance of the logarithm with that of the job's current measurement, which cancels in comparisons with it."""
    healthy: Floats
    """Where the job is: units of work a second that its chips would give without the fault that holds down their
    clocks. NaN where there is none, and elsewhere, where the median is of healthy chips."""
    missing: Codes
    """`Missing`, by number."""
    origin: Codes
    """`Origin`, by number."""
    describe: Describe
    """What a row was derived from, and the named doubt that it shares with others. Made for who asks."""

    def estimate(self, row: int) -> Estimate | Missing:
        """One row by itself."""
        missing = int(self.missing[row])
        if missing:
            return Missing(missing)
        basis, shared = self.describe(row)
        return Estimate(float(self.median[row]), float(self.sd[row]), basis, shared)


class Predictor(Protocol):
    """A model of throughput."""

    @property
    def version(self) -> str:
        """Names the model and its parameters. Whoever keeps predictions keeps it with them."""
        ...

    def of_fleet(self, experience: Sequence[Comparison]) -> "Predictor":
        """The same model after what the fleet's own moves have shown."""
        ...

    def predict(self, jobs: Features, machines: Machines, targets: Destinations) -> Prediction:
        """Every target's throughput."""
        ...
