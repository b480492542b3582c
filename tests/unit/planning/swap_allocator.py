"""Another allocator, to try the seam: everybody's favourite while it lasts, then the best single swap."""

from rightpool.planning.allocate.allocator import AllocationProblem, Ask, Choice, Grant, Turn
from rightpool.planning.jobs.job import JobKey

Picks = dict[JobKey, int]


class BestSingleSwap:
    """Who does not get its favourite takes the chips of another job where that makes the sum worth more."""

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """By chips of whole pools: what nodes have room for is not asked."""
        free = {pool: sum(nodes.values()) for pool, nodes in problem.free().items()}
        order = sorted(problem.asks.values(), key=lambda ask: (ask.turn, ask.job.created_at, ask.key))
        first = self._picked(problem, order, dict(free))
        best = first, self._worth(order, first)
        for giver in [ask for ask in order if ask.turn is Turn.MOVE and ask.key in first]:
            swapped = self._picked(problem, [ask for ask in order if ask is not giver] + [giver], dict(free))
            worth = self._worth(order, swapped)
            if worth > best[1] + 1e-9:
                best = swapped, worth
        return Choice(tuple(Grant(ask.key, ask.offers[best[0][ask.key]]) for ask in order if ask.key in best[0]))

    def _picked(self, problem: AllocationProblem, order: list[Ask], free: dict[str, int]) -> Picks:
        picks: Picks = {}
        for ask in order:
            for offer, place in enumerate(ask.offers):
                if ask.chips(offer) <= free[place.pool] and problem.forbidden(ask, offer) is None:
                    free[place.pool] -= ask.chips(offer)
                    picks[ask.key] = offer
                    break
        return picks

    def _worth(self, asks: list[Ask], picks: Picks) -> float:
        return sum(ask.values[picks[ask.key]] for ask in asks if ask.key in picks)
