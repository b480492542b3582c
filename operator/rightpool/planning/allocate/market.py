"""The market: every placement that a job of the fleet could have, what it would do there, and what it would pay.

Rows of options, those of one job together, jobs in the order of their keys: nothing depends on how they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import JobKey
from rightpool.prediction.columns import Bools, Floats, Ints, floats


@dataclass(frozen=True, slots=True, eq=False)
class Stake:
    """A job that takes part."""

    key: JobKey
    """The job's."""
    places: tuple[Placement, ...]
    """What it could have, where it is among them."""
    rates: Floats
    """Useful work a second at each; NaN where that is not known."""
    prices: Floats
    """Dollars an hour of each."""
    left: Floats
    """Seconds until its end at each."""
    value: float
    """Dollars that an hour of its time is worth."""
    here: Placement | None = None
    """Where it is; None while it waits."""
    started: bool = False
    """Whether it has ever been anywhere."""
    restart: float = 0.0
    """Seconds that a change costs it."""
    changes: float = 0.0
    """How often it was moved, resized or paused, the less the longer ago."""


class Market:
    """All stakes, in columns."""

    __slots__ = (
        "changes",
        "chips",
        "first",
        "here",
        "job",
        "keys",
        "left",
        "option",
        "places",
        "pool",
        "pools",
        "prices",
        "rates",
        "restart",
        "size",
        "started",
        "value",
    )

    keys: tuple[JobKey, ...]
    """The jobs'."""
    pools: tuple[str, ...]
    """Names."""
    chips: Ints
    """Of each pool, those that jobs of the market hold included."""
    job: Ints
    """Of each option, by its place among the keys."""
    pool: Ints
    """Of each option, by its place among the pools."""
    size: Ints
    """Chips of each option."""
    rates: Floats
    """Useful work a second at each option; 0 where that is not known."""
    prices: Floats
    """Dollars an hour of each option."""
    left: Floats
    """Seconds until the job's end at each option; infinite where that is not known."""
    first: Ints
    """Where each job's options begin, and the number of all."""
    here: Ints
    """The option that each job has; -1 where it has none."""

    def __init__(self, stakes: Iterable[Stake], chips: Mapping[str, int]) -> None:
        """chips: of each pool, those that the stakes hold included."""
        given = sorted((stake for stake in stakes if stake.places), key=lambda stake: stake.key)
        self.keys = tuple(stake.key for stake in given)
        self.pools = tuple(sorted(chips))
        self.chips = np.array([chips[pool] for pool in self.pools], dtype=np.int64)
        number = {pool: index for index, pool in enumerate(self.pools)}
        counts = np.array([len(stake.places) for stake in given], dtype=np.int64)
        places = [place for stake in given for place in stake.places]
        job = np.repeat(np.arange(len(given)), counts)
        pool = np.array([number[place.pool] for place in places], dtype=np.int64)
        size = np.array([place.chips for place in places], dtype=np.int64)
        price = _joined([stake.prices for stake in given])
        order = np.lexsort((price, size, pool, job))
        self.places = [places[index] for index in order.tolist()]
        self.job, self.pool, self.size, self.prices = job[order], pool[order], size[order], price[order]
        rates = _joined([stake.rates for stake in given])[order]
        self.rates = np.where(np.isfinite(rates) & (rates > 0.0), rates, 0.0)
        left = _joined([stake.left for stake in given])[order]
        self.left = np.where(np.isfinite(left), left, np.inf)
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.here = np.full(len(given), -1, dtype=np.int64)
        for index, stake in enumerate(given):
            if stake.here is not None:
                low, high = int(self.first[index]), int(self.first[index + 1])
                self.here[index] = low + self.places[low:high].index(stake.here)
        self.value = floats([stake.value for stake in given])
        self.started: Bools = np.array([stake.started for stake in given], dtype=np.bool_)
        self.restart = floats([stake.restart for stake in given])
        self.changes = floats([stake.changes for stake in given])

    @property
    def runs(self) -> Bools:
        """Whether each job has a place."""
        return self.here >= 0

    def placements(self, choice: Ints) -> dict[JobKey, Placement | None]:
        """What each job gets. choice: an option a job; -1: none."""
        chosen = zip(self.keys, choice.tolist(), strict=True)
        return {key: None if option < 0 else self.places[option] for key, option in chosen}


def _joined(columns: list[Floats]) -> Floats:
    return np.concatenate(columns) if columns else floats([])
