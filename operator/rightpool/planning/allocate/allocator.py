"""The interface of every way to share out chips: who asks for what and what is free in, who gets what out.

A problem has the jobs that ask, with their offers in order of preference and what each is worth, the chips that are
free, and what is forbidden. A choice says who is served before whom, with which offers. Everything else is done around
it (settle.py), the same for all: waiting migrations, limits, nodes that are kept free, ways back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from rightpool.api.placement import Placement
from rightpool.planning.allocate.market import Stake
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.evidence import Limit, Outbid


class Turn(IntEnum):
    """What chips are asked for."""

    START = 0
    """A job without a place."""
    DEMAND = 1
    """A user's edit, of the job or of what is allowed."""
    MOVE = 2
    """A move that pays or repairs."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that asks for chips. All other jobs stay where they are."""

    job: Job
    """Who asks."""
    turn: Turn
    """For what."""
    evaluated: Evaluated
    """What it could have."""
    saved_per_hour: float = 0.0
    """What its best offer saves, dollars an hour, time at its value included."""

    @property
    def key(self) -> JobKey:
        """The job's."""
        return self.job.key

    @property
    def offers(self) -> tuple[Placement, ...]:
        """What it could have, the best first for it."""
        return self.evaluated.places

    @property
    def values(self) -> tuple[float, ...]:
        """What each offer saves against where the job is, dollars an hour; 0 where it was not measured."""
        return tuple(self.evaluated.hour * self.evaluated.saving(entry) for entry in self.evaluated.wanted)

    def chips(self, offer: int) -> int:
        """How many of an offer's chips it does not have yet."""
        place = self.offers[offer]
        own = 0 if self.job.starts_itself(place) else own_chips(self.job, place.pool)
        return max(0, place.chips - own)


def own_chips(job: Job, pool: str) -> int:
    """Chips of a pool that a job has."""
    revision, lacks = job.state.revision, job.lacks
    if revision is None or revision.placement.pool != pool:
        return 0
    return revision.placement.chips - (0 if lacks is None else lacks.chips)


class MarketMembers(NamedTuple):
    """The jobs among which chips are shared out by what they are worth to them, and the chips that they bring."""

    places: Sequence[Placement] = ()
    """Everywhere one of them could be."""
    stakes: tuple[Stake, ...] = ()
    """One a job. Who asks for chips and has none comes in its turn."""
    chips: Mapping[str, int] = MappingProxyType({})
    """By pool, those that they hold, and those that moves under way are about to leave."""


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """What is to be shared out in one cycle."""

    asks: Mapping[JobKey, Ask]
    """The jobs that ask for chips."""
    free: Callable[[], Mapping[str, Mapping[str, int]]]
    """Chips by pool and node that nobody holds or was promised; those of nodes that can be added under `+`."""
    members: Callable[[], MarketMembers]
    """Whose chips are shared out by what they are worth; made for who asks."""
    fits: Callable[[Ask], tuple[bool, ...]] = lambda ask: (True,) * len(ask.offers)
    """Which of its offers a job could have now, were it to ask alone."""
    forbidden: Callable[[Ask, int], Limit | None] = lambda ask, offer: None
    """Why a job may not have an offer now, whatever others get; None where it may."""
    lacking: Callable[[Mapping[JobKey, Placement]], frozenset[JobKey]] = lambda changes: frozenset()
    """Of jobs that get something else than they have, those whose pods would find no nodes, were all carried out."""


class Grant(NamedTuple):
    """What one job may have."""

    key: JobKey
    """The job's."""
    place: Placement | None = None
    """The only one that it gets; None: the first of its offers that is left."""
    gain: float = 0.0
    """Dollars an hour that it gains by that, its restart paid; below 0 where it gives way to others."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Who is served, with what. Who asks and is not named gets nothing."""

    grants: tuple[Grant, ...] = ()
    """In the order of service, each job once."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Dollars an hour that one more chip of a pool would be worth to the fleet beyond its list price; of pools alone in
    which it would be worth something."""
    outbid: Mapping[JobKey, Outbid] = field(default_factory=dict)
    """Of jobs that do not get what is worth most to them: by how much its chips are worth more to others."""
    failure: str | None = None
    """Why the greedy allocation stands in for one that should have been made; None where it does not."""

    def dearest(self, most: int) -> list[tuple[str, float]]:
        """The pools with the highest prices, the dearest first."""
        return sorted(self.prices.items(), key=lambda one: (-one[1], one[0]))[:most]


NOTHING_CHOSEN: Final = Choice()
"""Nobody is served."""


class Allocator(Protocol):
    """A way to share out chips, passed in where the operator is put together."""

    def share(self, problem: AllocationProblem, before: Choice | None) -> Choice:
        """Who gets what. before: what this allocator chose in the last cycle.

        Nothing may depend on the order in which jobs or pools come.
        """
        ...
