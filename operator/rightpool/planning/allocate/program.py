"""The program: one option a job at most, no more chips of a pool than there are, and the largest sum of their worth.

A job that has a place keeps one: nobody is paused for another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rightpool.planning.allocate.market import NOTHING, Market
from rightpool.prediction.columns import Bools, Floats, Ints, floats


class Favourites(NamedTuple):
    """What each job would take at given prices."""

    choice: Ints
    """An option of the program; NOTHING where all cost more than they are worth."""
    gain: Floats
    """What it is worth beyond the prices of its chips."""


class AllocationProgram:
    """Options that can be part of a best plan, those of one job together."""

    __slots__ = ("chips", "first", "here", "job", "jobs", "keeps", "options", "pool", "size", "worth")

    options: Ints
    """Their places among those given."""
    worth: Floats
    """Dollars an hour of each."""
    keeps: Bools
    """Whether each job has to have an option."""
    here: Ints
    """The option of the program that each job has; NOTHING where it has none."""

    def __init__(self, given: Market, worth: Floats) -> None:
        """worth: of each option given, dollars an hour; -inf where a job can't have it."""
        self.options = np.flatnonzero(_useful(given, worth))
        self.job, self.pool = given.job[self.options], given.pool[self.options]
        self.size = given.size[self.options].astype(np.float64)
        self.worth = np.where(np.isfinite(worth[self.options]), worth[self.options], 0.0)
        self.jobs, self.chips = len(given.here), given.chips.astype(np.float64)
        self.first = np.searchsorted(self.job, np.arange(self.jobs + 1))
        self.keeps = given.here != NOTHING
        self.here = np.full(self.jobs, NOTHING, dtype=np.int64)
        self.here[self.keeps] = np.searchsorted(self.options, given.here[self.keeps])

    def favourites(self, prices: Floats) -> Favourites:
        """What each job would take. prices: dollars a chip-hour beyond its list price, of each pool."""
        return self.best_of(self.worth - prices[self.pool] * self.size)

    def best_of(self, net: Floats) -> Favourites:
        """The option of each job with the largest of these numbers, where it is above 0 or the job has to have one."""
        most = self.largest(net)
        hit = np.flatnonzero(net >= most[self.job])
        choice = np.full(self.jobs, NOTHING, dtype=np.int64)
        choice[self.job[hit[::-1]]] = hit[::-1]
        none = (most <= 0.0) & ~self.keeps
        choice[none] = NOTHING
        return Favourites(choice, np.where(none, 0.0, most))

    def largest(self, net: Floats) -> Floats:
        """Of each job; -inf where it has no option."""
        most = np.full(self.jobs, -np.inf)
        has = self.first[1:] > self.first[:-1]
        if has.any():
            most[has] = np.maximum.reduceat(net, self.first[:-1][has])
        return most

    def second(self, net: Floats, first: Ints) -> Floats:
        """Of each job, the largest of these numbers but for that of its first choice; 0 where it may have nothing."""
        others = net.copy()
        others[first[first != NOTHING]] = -np.inf
        return np.maximum(self.largest(others), np.where(self.keeps, -np.inf, 0.0))

    def used(self, choice: Ints) -> Floats:
        """Chips of each pool."""
        taken = choice[choice != NOTHING]
        return floats(np.bincount(self.pool[taken], self.size[taken], len(self.chips)))

    def value(self, choice: Ints) -> float:
        """Dollars an hour of a choice."""
        return float(self.worth[choice[choice != NOTHING]].sum())

    def bound(self, prices: Floats) -> float:
        """No choice is worth more than this, whatever the prices."""
        return float(self.favourites(prices).gain.sum() + prices @ self.chips)

    def fits(self, choice: Ints) -> bool:
        """Whether there are chips for it."""
        return bool((self.used(choice) <= self.chips).all())


def _useful(given: Market, worth: Floats) -> Bools:
    """Options that are worth something, and more than a smaller one of the same pool; and where jobs are."""
    count, keeps = len(worth), given.here != NOTHING
    useful: Bools = np.isfinite(worth) & ((worth > 0.0) | keeps[given.job])
    start = np.ones(count, dtype=np.bool_)
    start[1:] = (given.job[1:] != given.job[:-1]) | (given.pool[1:] != given.pool[:-1])
    group = np.cumsum(start) - 1
    # The largest of those before it in its group: options of a group come by size.
    shifted = np.where(start, -np.inf, np.concatenate([[-np.inf], np.where(useful, worth, -np.inf)])[:count])
    useful &= worth > _running_largest(shifted, group)
    useful[given.here[keeps]] = True
    return useful


def _running_largest(values: Floats, group: Ints) -> Floats:
    """Of each value and those before it in its group. By doubling: groups are short."""
    most, step = values.copy(), 1
    while step < len(most):
        same = group[step:] == group[:-step]
        if not same.any():
            break
        before = np.where(same, most[:-step], -np.inf)
        most[step:] = np.maximum(most[step:], before)
        step *= 2
    return most
