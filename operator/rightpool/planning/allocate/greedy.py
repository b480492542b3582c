"""Greedy admission: jobs are served one after another, each with the best that is left.

First starts come first, the oldest before all; then what users demand, the oldest first; then moves, the largest saving
first.
"""

from rightpool.planning.allocate.allocator import AllocationProblem, Ask, Choice, Grant, Turn
from rightpool.planning.jobs.job import JobKey


class GreedyAllocator:
    """The present implementation of `Allocator`."""

    __slots__ = ()

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """Everybody who asks, in turn."""
        return Choice(tuple(Grant(ask.key) for ask in sorted(problem.asks.values(), key=greedy_turn)))


def greedy_turn(ask: Ask) -> tuple[Turn, float, JobKey]:
    """Whose turn comes first: the smallest."""
    first = -ask.saved_per_hour if ask.turn is Turn.MOVE else ask.job.created_at
    return ask.turn, first, ask.key
