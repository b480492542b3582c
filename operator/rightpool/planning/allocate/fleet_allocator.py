"""The fleet's allocator: chips go where they are worth most in all, not to who asks first.

What users demand and what repairs a target comes first, as in the greedy allocation. What is left is shared out among
jobs that start and moves that save, at once: somebody gets its second choice where its first is worth more to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from rightpool.api.choices import GivingWay
from rightpool.api.placement import Placement
from rightpool.planning.allocate.allocator import AllocationProblem, Ask, Choice, Grant, MarketMembers
from rightpool.planning.allocate.greedy import GreedyAllocator, greedy_turn
from rightpool.planning.allocate.market import Market
from rightpool.planning.allocate.share_out import SharedOut, shared_out

# Plans that are made, each without what did not fit the nodes in those before; from the second number on, without all
# that such a job could have had.
_PLANS: Final = 12
_OF_PLACES: Final = 4


class FleetAllocator:
    """An implementation of `Allocator`."""

    __slots__ = ()

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """The placements that are worth most together. Where they can't be found, by a defect or by what a library
        does, greedy stands in and the choice says why: no job is lost for want of a plan."""
        try:
            return self._shared(problem, before)
        except Exception as error:
            return replace(GreedyAllocator().share(problem, before), failure=f"{type(error).__name__}: {error}")

    def _shared(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """Who wants what nobody else does gets what it wants most."""
        asks = sorted(problem.asks.values(), key=greedy_turn)
        members = problem.members()
        asking = [stake.key for stake in members.stakes if stake.key in problem.asks]
        if len(asking) == len(members.stakes) and not _contested(problem, asks):
            return GreedyAllocator().share(problem, before)
        keys = {stake.key for stake in members.stakes}
        first = [ask for ask in asks if ask.key not in keys]
        free = _left(problem, first)
        chips = {pool: free[pool] + members.chips.get(pool, 0) for pool in sorted(free)}
        members, plan = _placeable(problem, members, chips, {} if before is None else before.prices)
        prices = {pool: price for pool, price in plan.prices.items() if price > 0.0}
        late = (Grant(ask.key, place) for ask in asks if ask.key in keys and (place := _spare(ask, plan)) is not None)
        return Choice((*(Grant(ask.key) for ask in first), *_changes(members, plan), *late), prices, plan.outbid)


def _placeable(
    problem: AllocationProblem, members: MarketMembers, chips: Mapping[str, int], prices: Mapping[str, float]
) -> tuple[MarketMembers, SharedOut]:
    """The plan whose pods all find nodes, and its members: without what would find none. Nobody gives chips away with
    which nothing can be done."""
    for number in range(_PLANS):
        plan = shared_out(Market(members.places, members.stakes, chips), prices)
        lacking = problem.lacking({grant.key: grant.place for grant in _changes(members, plan) if grant.place})
        if not lacking.intersection(plan.places):
            return members, plan
        stakes = (
            stake.without(members.places, plan.places[stake.key] if number < _OF_PLACES else None)
            if stake.key in lacking
            else stake
            for stake in members.stakes
        )
        members, prices = members._replace(stakes=tuple(stake for stake in stakes if len(stake.places))), plan.prices
    raise RuntimeError(f"after {_PLANS} plans pods would still find no nodes")


def _changes(members: MarketMembers, plan: SharedOut) -> list[Grant]:
    """Who gets something else than it has, the largest gain first."""
    gets = [
        (-plan.gains[stake.key], stake.key, place)
        for stake in members.stakes
        if (place := plan.places[stake.key]) is not None and place != stake.place_among(members.places)
    ]
    return [Grant(key, place, -loss) for loss, key, place in sorted(gets)]


def _spare(ask: Ask, plan: SharedOut) -> Placement | None:
    """What the plan leaves of what a job wants that gets nothing else by it: what nobody else wants. Who lets the fleet
    move it has what is worth most of that already."""
    place, revision = plan.places.get(ask.key), ask.job.state.revision
    lets = ask.job.spec.adaptation.gives_way is GivingWay.MOVE
    if place is not None and (revision is None or lets or place != revision.placement):
        return None
    return next((offer for offer in ask.offers if not plan.prices[offer.pool]), None)


def _contested(problem: AllocationProblem, asks: Iterable[Ask]) -> bool:
    """Whether there are too few chips of a pool for all that want it most."""
    free = _free(problem)
    for ask in asks:
        free[ask.offers[0].pool] -= ask.chips(0)
    return min(free.values(), default=0) < 0


def _left(problem: AllocationProblem, first: Iterable[Ask]) -> dict[str, int]:
    """Chips of each pool, less what these will take."""
    free = _free(problem)
    for ask in first:
        for offer, place in enumerate(ask.offers):
            chips = ask.chips(offer)
            if chips <= free[place.pool] and problem.forbidden(ask, offer) is None:
                free[place.pool] -= chips
                break
    return free


def _free(problem: AllocationProblem) -> dict[str, int]:
    return {pool: sum(nodes.values()) for pool, nodes in problem.free().items()}
