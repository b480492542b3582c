"""Offers: every placement that jobs could have, one table in columns, which the gates of gates.py judge all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np

from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.prediction.columns import Bools, Floats, Ints

SURE: Final = 0.84
"""Four fifths' certainty in standard deviations: so much of a normal distribution is below its mean and so many."""


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
class Offers:
    """One entry for each job and placement, those of one job together, its best first; or one a job for where it is.

    In what is about the current placement, restart is 0. Of a job of which nothing was measured only `option` and
    `gate` are known: it is judged by prices and specifications alone.
    """

    numbers: Numbers
    """Of the jobs."""
    job: Ints
    """A place in `numbers`; -1 of one that was not measured."""
    option: Ints
    """A placement of the register."""
    gate: Ints
    """What rules it out, by the register's codes."""
    predicted: Ints
    """The row of the prediction; -1 where nothing was asked."""
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
    """Seconds of work that getting there costs."""
    score: Floats
    """Dollars per million units, time included."""
    saving: Floats
    """Share of the current score that moving saves; 0 of jobs that were not measured."""
    probability: Floats
    """That it is better at all."""
    lasting: Floats
    """Share that moving saves over the horizon, where prices of today may not last."""
    sure: Floats
    """Units of work a second that are done there with four fifths' certainty, against where the job is, interruptions
    deducted; where it is, the median. NaN where that is not known, or a gate rules it out."""

    @property
    def worth(self) -> Floats:
        """The rate, as far as it is worth anything."""
        worth: Floats = np.minimum(self.rate, self.numbers.demand[self.job])
        return worth

    def limit(self, field: str) -> Floats:
        """What the target of this field is held to."""
        limit: Floats = self.numbers.limits[field][self.job]
        return limit

    def of(self, chosen: Ints, numbers: Numbers | None = None) -> Offers:
        """Some of the offers. numbers: others of the jobs."""
        columns = {field.name: getattr(self, field.name)[chosen] for field in fields(self) if field.name != "numbers"}
        return Offers(numbers=numbers or self.numbers, **columns)

    @classmethod
    def unmeasured(cls, option: Ints, gate: Ints) -> Offers:
        """Of a job of which nothing was measured."""
        blank = _blank(cls, len(option))
        return cls(**blank | {"option": option, "gate": gate, "saving": np.zeros(len(option))}, numbers=_NO_NUMBERS)


def _blank(table: type[Numbers | Offers], count: int) -> dict[str, Any]:
    """A column for each field of which nothing is known."""
    kinds = {
        "Floats": np.full(count, np.nan),
        "Ints": np.full(count, -1, dtype=np.int64),
        "Bools": np.zeros(count, dtype=np.bool_),
        "Mapping[str, Floats]": {},
    }
    return {field.name: kinds[str(field.type)] for field in fields(table) if field.name != "numbers"}


_NO_NUMBERS: Final = Numbers(**_blank(Numbers, 0))
NO_OFFERS: Final = Offers.unmeasured(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@value_object
class OneOffer:
    """One entry by itself, with what it is about: for the parameters of a rejection."""

    offers: Offers
    """The table."""
    entry: int
    """Its place there."""
    job: Job
    """Whose it is."""
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

    @property
    def rate(self) -> float:
        """Units of work a second."""
        return float(self.offers.rate[self.entry])

    @property
    def cost(self) -> float:
        """Dollars per million units."""
        return float(self.offers.cost[self.entry])

    @property
    def efficiency(self) -> float:
        """Throughput / (chips × one-chip throughput)."""
        return float(self.offers.efficiency[self.entry])

    @property
    def full(self) -> float:
        """Units of work a second at the chips' peak FLOP/s."""
        return float(self.offers.full[self.entry])

    @property
    def price(self) -> float:
        """Dollars an hour."""
        return float(self.offers.price[self.entry])

    @property
    def rest(self) -> float:
        """Seconds until the work is done, a restart included; NaN where its amount is not known."""
        return self.of_job(self.offers.numbers.work_left) / self.rate + float(self.offers.restart[self.entry])

    def limit(self, field: str) -> float:
        """What the target of this field is held to; NaN where it is not declared."""
        return self.of_job(self.offers.numbers.limits[field])

    def of_job(self, column: Floats | Bools) -> float:
        """What a column has of the job."""
        return float(column[self.offers.job[self.entry]])
