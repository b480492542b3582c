"""The fleet's allocator: chips go where they save most in all, not to who asks first.

Starts, what users demand and what repairs come first, as in the greedy allocation. What is left is shared out among all
moves that save, at once: somebody gets its second choice where its first is worth more to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rightpool.planning.allocate.allocator import AllocationProblem, Ask, Choice, Grant, Turn
from rightpool.planning.allocate.exchange import exchanged
from rightpool.planning.allocate.greedy import GreedyAllocator, greedy_turn
from rightpool.planning.allocate.market import NOTHING
from rightpool.planning.allocate.prices import priced
from rightpool.planning.allocate.program import AllocationProgram
from rightpool.planning.offers.intent import Intent
from rightpool.prediction.columns import Floats, Ints, floats


@dataclass(frozen=True, slots=True)
class _Moves:
    """What moves could have, in columns."""

    job: Ints
    pool: Ints
    size: Ints
    chips: Ints
    here: Ints
    offer: Ints


class FleetAllocator:
    """An implementation of `Allocator`."""

    __slots__ = ()

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """The moves that save most together; greedily where that saves as much."""
        greedy = GreedyAllocator().share(problem, before)
        asks = sorted(problem.asks.values(), key=greedy_turn)
        if not _contested(problem, asks):
            return greedy
        saving = [ask for ask in asks if ask.turn is Turn.MOVE and ask.evaluated.intent is Intent.SAVE]
        first = [ask for ask in asks if ask.turn is not Turn.MOVE or ask.evaluated.intent is not Intent.SAVE]
        free = _left(problem, first)
        moves, worth = _columns(problem, saving, free)
        program = AllocationProgram(moves, worth)
        found = priced(program, np.zeros(len(free)))
        choice = exchanged(program, found)
        prices = {pool: price for pool, price in zip(sorted(free), found.prices.tolist(), strict=True) if price > 0.0}
        if not prices or program.value(choice) <= program.value(_in_turn(program, len(saving))):
            return Choice(greedy.grants, prices)
        gets = [
            (float(program.worth[option]), saving[job], int(moves.offer[program.options[option]]))
            for job, option in enumerate(choice.tolist())
            if option != NOTHING
        ]
        gets.sort(key=lambda one: (-one[0], one[1].key))
        grants = [Grant(ask.key) for ask in first] + [Grant(ask.key, frozenset({offer})) for _, ask, offer in gets]
        return Choice(tuple(grants), prices)


def _contested(problem: AllocationProblem, asks: Iterable[Ask]) -> bool:
    """Whether there are too few chips of a pool for all that want it most."""
    free = {pool: sum(nodes.values()) for pool, nodes in problem.free().items()}
    for ask in asks:
        free[ask.offers[0].pool] -= ask.chips(0)
    return min(free.values(), default=0) < 0


def _left(problem: AllocationProblem, first: Iterable[Ask]) -> dict[str, int]:
    """Chips of each pool, less what these will take."""
    free = {pool: sum(nodes.values()) for pool, nodes in problem.free().items()}
    for ask in first:
        for offer, place in enumerate(ask.offers):
            chips = ask.chips(offer)
            if chips <= free[place.pool] and problem.forbidden(ask, offer) is None:
                free[place.pool] -= chips
                break
    return free


def _columns(problem: AllocationProblem, asks: list[Ask], free: dict[str, int]) -> tuple[_Moves, Floats]:
    number = {pool: index for index, pool in enumerate(sorted(free))}
    rows = [
        (job, number[place.pool], ask.chips(offer), offer, value)
        for job, ask in enumerate(asks)
        for offer, (place, value, fits) in enumerate(zip(ask.offers, ask.values, problem.fits(ask), strict=True))
        if fits and problem.forbidden(ask, offer) is None
    ]
    rows.sort(key=lambda row: row[:4])
    columns = [np.array(column, dtype=np.int64) for column in list(zip(*rows, strict=True))[:4]] or [
        np.zeros(0, dtype=np.int64)
    ] * 4
    chips = np.array([free[pool] for pool in sorted(free)], dtype=np.int64)
    nothing = np.full(len(asks), NOTHING, dtype=np.int64)
    moves = _Moves(columns[0], columns[1], columns[2], chips, nothing, columns[3])
    return moves, floats([row[4] for row in rows])


def _in_turn(program: AllocationProgram, jobs: int) -> Ints:
    """What the jobs get one after another, each the best that is left."""
    free, choice = program.chips.copy(), np.full(jobs, NOTHING, dtype=np.int64)
    for job in range(jobs):
        options = np.arange(program.first[job], program.first[job + 1])
        fits = options[program.size[options] <= free[program.pool[options]]]
        if len(fits):
            option = int(fits[program.worth[fits].argmax()])
            free[program.pool[option]] -= program.size[option]
            choice[job] = option
    return choice
