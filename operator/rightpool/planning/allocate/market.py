"""The market: every placement that a job of the fleet could have, what it would do there, and what it would pay.

Rows of options, those of one job together, jobs in the order of their keys: nothing depends on how they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import JobKey
from rightpool.prediction.columns import Bools, Floats, Ints, floats

NOTHING: Final = -1
"""In place of an option: none."""
# What is beyond these is no number of a job: dollars an hour, units of work a second, seconds. Where a rate or a price
# is so, the option is not known; a restart that is takes longer than anything is worth.
_MOST_DOLLARS: Final = 1e12
_RATES: Final = (1e-9, 1e15)
_LONGEST: Final = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class Stake:
    """A job that takes part."""

    key: JobKey
    """The job's."""
    places: Ints
    """What it could have, where it is among them: positions among the placements of the market."""
    rates: Floats
    """Useful work a second at each; NaN where that is not known."""
    prices: Floats
    """Dollars an hour of each."""
    left: Floats
    """Seconds until its end at each."""
    value: float
    """Dollars that an hour of its time is worth."""
    here: int = NOTHING
    """Where it is, among the placements of the market; NOTHING while it waits."""
    started: bool = False
    """Whether it has ever been anywhere."""
    restart: float = 0.0
    """Seconds that a change costs it."""
    changes: float = 0.0
    """How often it was moved or resized, the less the longer ago."""
    ahead: bool = False
    """Whether it comes before all others, so that its value is no amount of money."""

    def without(self, places: Sequence[Placement], refused: Placement | None) -> Stake:
        """The same without what needs as many pods as large as a place that can't be had; None: without anything but
        where it is. places: those of the market."""
        keeps = [
            number == self.here or (refused is not None and not _needs_as_much(places[number], refused))
            for number in self.places.tolist()
        ]
        columns = {name: getattr(self, name)[keeps] for name in ("places", "rates", "prices", "left")}
        return replace(self, **columns)

    def place_among(self, places: Sequence[Placement]) -> Placement | None:
        """Where it is, of the market's placements."""
        return None if self.here == NOTHING else places[self.here]


def _needs_as_much(place: Placement, other: Placement) -> bool:
    large = place.chips_per_replica >= other.chips_per_replica and place.chips >= other.chips
    return place.pool == other.pool and large


class Market:
    """All stakes, in columns."""

    __slots__ = (
        "ahead",
        "changes",
        "chips",
        "first",
        "here",
        "job",
        "keys",
        "left",
        "options",
        "places",
        "pool",
        "pools",
        "prices",
        "rates",
        "restart",
        "runs",
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
    options: Ints
    """Of each option, its place among the placements."""
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
    """The option that each job has; NOTHING where it has none."""
    runs: Bools
    """Whether each job has one."""
    value: Floats
    """Dollars that an hour of each job's time is worth."""
    started: Bools
    """Whether each job has ever been anywhere."""
    restart: Floats
    """Seconds that a change costs each job."""
    changes: Floats
    """How often each was changed, the less the longer ago."""
    ahead: Bools
    """Whether each comes before all others."""

    def __init__(self, places: Sequence[Placement], stakes: Iterable[Stake], chips: Mapping[str, int]) -> None:
        """chips: of each pool, those that the stakes hold included."""
        given = sorted((stake for stake in stakes if len(stake.places)), key=lambda stake: stake.key)
        self.places = places
        self.keys = tuple(stake.key for stake in given)
        self.pools = tuple(sorted(chips))
        self.chips = np.array([chips[pool] for pool in self.pools], dtype=np.int64)
        number = {pool: index for index, pool in enumerate(self.pools)}
        pools = np.array([number[place.pool] for place in places], dtype=np.int64)
        sizes = np.array([place.chips for place in places], dtype=np.int64)
        counts = np.array([len(stake.places) for stake in given], dtype=np.int64)
        job = np.repeat(np.arange(len(given)), counts)
        options = np.concatenate([stake.places for stake in given]) if given else np.zeros(0, dtype=np.int64)
        price = _joined([stake.prices for stake in given])
        priced = _within(price, 0.0, _MOST_DOLLARS)
        price = np.where(priced, price, 0.0)
        order = np.lexsort((price, sizes[options], pools[options], job))
        self.job, self.options, self.prices = job, options[order], price[order]
        self.pool, self.size = pools[self.options], sizes[self.options]
        rates = _joined([stake.rates for stake in given])
        self.rates = np.where(priced & _within(rates, *_RATES), rates, 0.0)[order]
        left = _joined([stake.left for stake in given])[order]
        self.left = np.where(_within(left, 0.0, _LONGEST), left, np.inf)
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        where = np.array([stake.here for stake in given], dtype=np.int64)
        rows = np.flatnonzero(self.options == where[job])
        self.here = np.full(len(given), NOTHING, dtype=np.int64)
        self.here[job[rows]] = rows
        self.runs = self.here != NOTHING
        value, restart = floats([stake.value for stake in given]), floats([stake.restart for stake in given])
        self.value = np.where(_within(value, 0.0, _MOST_DOLLARS), value, 0.0)
        self.started = np.array([stake.started for stake in given], dtype=np.bool_)
        self.ahead = np.array([stake.ahead for stake in given], dtype=np.bool_)
        self.restart = np.where(_within(restart, 0.0, _LONGEST), restart, _LONGEST)
        changes = floats([stake.changes for stake in given])
        self.changes = np.where(_within(changes, 0.0, _LONGEST), changes, 0.0)

    def placements(self, choice: Ints) -> dict[JobKey, Placement | None]:
        """What each job gets. choice: an option a job; NOTHING: none."""
        chosen = np.where(choice == NOTHING, NOTHING, self.options[choice])
        return {
            key: None if place == NOTHING else self.places[place]
            for key, place in zip(self.keys, chosen.tolist(), strict=True)
        }


def _within(values: Floats, least: float, most: float) -> Bools:
    """Which of them can be so at all. NaN can't."""
    with np.errstate(invalid="ignore"):
        within: Bools = (values >= least) & (values <= most)
    return within


def _joined(columns: list[Floats]) -> Floats:
    return np.concatenate(columns) if columns else floats([])
