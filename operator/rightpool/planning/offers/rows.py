"""Rows: every placement of every running job in columns, which the gates of gates.py judge all at once."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.prediction.columns import Bools, Floats, Ints


@value_object
class Numbers:
    """What the gates take from jobs, one entry a job; NaN where not known or not declared."""

    memory: Floats
    """Bytes that each chip needs."""
    memory_measured: Bools
    """Whether that was measured; else it is declared."""
    keeps_batch: Bools
    """Whether a step has as many samples at every size."""
    steps_differ: Bools
    """Whether throughput is in steps, which have other numbers of samples at other sizes."""
    sharded: Bools
    """Whether model state may be split over the chips."""
    chips: Ints
    """Chips that the job has."""
    home: Ints
    """Its pool, a place among the machines."""
    price: Floats
    """Dollars an hour where it is."""
    needs_price: Bools
    """Whether what has no price can't be compared."""
    limits: Mapping[str, Floats]
    """What each target is held to, by its field."""
    demand: Floats
    """Units of work a second that are worth anything; infinitely many where faster is always better."""
    work_left: Floats
    """Work that is left."""
    recovery: Floats
    """Seconds of work that an interruption costs."""
    restart: Floats
    """Seconds of work that a move costs: the pause, and what is missing while the job starts slowly."""
    horizon: Floats
    """Seconds over which a move must pay back."""
    savings: Floats
    """adaptation.minSavings."""


@value_object
class Rows:
    """One entry for each job and placement; in what is about the current placement, restart is 0."""

    numbers: Numbers
    """Of the jobs."""
    job: Ints
    """A place in `numbers`."""
    pool: Ints
    """A place among the machines."""
    chips: Ints
    """How many."""
    price: Floats
    """Dollars an hour."""
    memory: Floats
    """Bytes of a chip there."""
    home_memory: Floats
    """Bytes of a chip where the job is."""
    same_chip: Bools
    """Whether the chips are of the kind that the job has."""
    seen: Bools
    """Whether the job ran at this very placement before."""
    unsupported: Bools
    """Whether the chips there lack the precision that the job works in."""
    avoided: Bools
    """Whether it was tried and left."""
    left: Bools
    """Whether the job left it while how it scales there is only guessed."""
    rate: Floats
    """Units of work a second; NaN where it can't be predicted."""
    sd: Floats
    """Standard deviation of its log, for the rest of the job."""
    shared: Floats
    """Covariance of that with the doubt about where the job is."""
    least: Floats
    """How likely a target has to hold, for the gate that is asked."""
    cost: Floats
    """Dollars per million units."""
    efficiency: Floats
    """Throughput / (chips × one-chip throughput)."""
    full: Floats
    """Units of work a second at the chips' peak FLOP/s, interruptions included as in rate; NaN where not known."""
    restart: Floats
    """The same of this row; 0 where the job stays."""

    @property
    def worth(self) -> Floats:
        """The rate, as far as it is worth anything."""
        worth: Floats = np.minimum(self.rate, self.numbers.demand[self.job])
        return worth

    def limit(self, field: str) -> Floats:
        """What the target of this field is held to."""
        limit: Floats = self.numbers.limits[field][self.job]
        return limit

    def of(self, chosen: Ints, numbers: Numbers | None = None) -> "Rows":
        """Some of the rows. numbers: others of the jobs."""
        columns = {field.name: getattr(self, field.name)[chosen] for field in fields(self) if field.name != "numbers"}
        return Rows(numbers=numbers or self.numbers, **columns)


@value_object
class Row:
    """One row by itself, with what it is about: for the parameters of a rejection."""

    job: Job
    """Whose row it is."""
    home: Pool
    """Where the job is."""
    pool: Pool
    """Where it would be."""
    placement: Placement
    """With how many chips."""
    now: float
    """Unix seconds."""
    current: bool
    """Whether that is where the job is."""
    rate: float
    """Units of work a second."""
    cost: float
    """Dollars per million units."""
    efficiency: float
    """Throughput / (chips × one-chip throughput)."""
    full: float
    """Units of work a second at the chips' peak FLOP/s."""
    price: float
    """Dollars an hour."""
    work_left: float
    """Work that is left."""
    restart: float
    """Seconds of work that getting there costs; 0 where the job stays."""
    limits: Mapping[str, float]
    """What each target is held to, by its field; NaN where it is not declared."""
    memory: float
    """Bytes that each chip needs."""
    memory_measured: bool
    """Whether that was measured; else it is declared."""

    @property
    def rest(self) -> float:
        """Seconds until the work is done, a restart included; NaN where its amount is not known."""
        return self.work_left / self.rate + self.restart
