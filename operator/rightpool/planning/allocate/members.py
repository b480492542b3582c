"""Members: what the fleet's jobs are to a market, each by what it would do where it could be.

A job that was measured is worth by what it does, of which its own uncertainty is taken off. One that was not does what
another job of the same program is known to do. Where there is none, the order in which it would be tried is known, and
that more chips do more: so much is its time worth as its first choice costs. It is worth the more the longer it waits.
Nobody's time is worth more than the dearest place that it could have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final

import numpy as np

from rightpool.api.choices import AdaptationMode, GivingWay
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.planning.allocate.allocator import Ask, MarketMembers, Turn
from rightpool.planning.allocate.leaving import leaves_for_good, leaving
from rightpool.planning.allocate.limits import FleetLimits, fleet_move_limit
from rightpool.planning.allocate.market import Stake
from rightpool.planning.allocate.room import Room
from rightpool.planning.allocate.surplus import CHANGES_FADE_SECONDS
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.evaluated import Evaluated, MeasuredJob
from rightpool.planning.offers.evidence import Limit
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.select import adaptation_mode
from rightpool.planning.work.outlook import SHORTEST_HORIZON_SECONDS
from rightpool.planning.work.registry import work_of
from rightpool.prediction.columns import floats

# Of the dearest place: what time is worth of jobs that ask for speed at any price. With all of it they held chips that
# others used better (`benchmarks.fleet --tier operator`).
_AT_ANY_PRICE: Final = 0.6
# Where chips cost nothing, time is worth something all the same: dollars an hour for each.
_FREE_CHIP: Final = 0.01
# Of what a job costs an hour: its time is worth that much at least, or who saves alone would never be given chips.
_LEAST_VALUE: Final = 0.1
# What n chips do that were never tried: n to this power.
_SCALING: Final = 0.8
# What each later choice is worth of the one before.
_LATER: Final = 0.98
# What counts above all others that do not wait for too long counts so many times.
_PASSED_OVER: Final = 1000.0


def members_of(
    asks: Iterable[Ask],
    alone: Mapping[JobKey, Assessment],
    fleet: Fleet,
    room: Room,
    limits: FleetLimits,
    forbidden: Callable[[Ask, int], Limit | None],
) -> MarketMembers:
    """Whose chips are shared out by what they are worth: of who starts, whose move saves, and who gives way. An offer
    that does not fit the nodes of a pool, though it has enough chips, is none; nor is one that a limit of the fleet
    refuses now: nobody would leave chips for who may not come, or wait for who may not go. alone: what each job would
    get by itself."""
    book = _Book(fleet.now, fleet.policy)
    free = {name: sum(room.free(name).values()) for name in fleet.pools}
    for name, left in leaving(fleet).items():
        book.add_chips(name, sum(left.values()))
    given = set[JobKey]()
    shunned = {name for name in fleet.pools if limits.against(name) is not None}
    for key, assessment in alone.items():
        job, evaluated = fleet.jobs[key], assessment.evaluated
        if evaluated is None or not gives_way(job, assessment, fleet) or limits.number_limit(job) is not None:
            continue
        given.add(key)
        entries = _possible(evaluated, room, free)
        book.add_running(evaluated, [entry for entry in entries if not _shunned(evaluated, entry, shunned, limits)])
    asks = list(asks)
    known = _measured_by_program(alone) if any(ask.turn is Turn.START for ask in asks) else {}
    for ask in asks:
        if ask.key in given:
            continue
        fits = room.fits(ask.job, ask.offers)
        if ask.turn is Turn.START:
            short = (ask.chips(offer) > free[place.pool] for offer, place in enumerate(ask.offers))
            could = [offer for offer, (fit, few) in enumerate(zip(fits, short, strict=True)) if fit or few]
            wished = _wished(ask, could, fits, fleet.policy)
            other = known.get(ask.job.workload_hash)
            alike = other is not None and _alike(ask.job.spec, other.job.spec)
            if other is None or not alike or not book.add_alike(ask, wished, other):
                book.add_waiting(ask, wished)
        elif ask.turn is Turn.MOVE and ask.evaluated.intent is Intent.SAVE:
            offers = [offer for offer, fit in enumerate(fits) if fit and forbidden(ask, offer) is None]
            book.add_running(ask.evaluated, [ask.evaluated.wanted[offer] for offer in offers])
    return book.made()


def lacking_nodes(changes: Mapping[JobKey, Placement], fleet: Fleet, room: Room) -> frozenset[JobKey]:
    """Of jobs that get something else than they have, those whose pods would find no nodes, were all carried out, and
    all that moves under way are about to leave free."""
    found: list[tuple[Job, Placement | None]] = [(fleet.jobs[key], place) for key, place in changes.items()]
    for job in fleet.jobs.values():
        migration = job.state.migration
        if migration is not None and leaves_for_good(job):
            there = migration.target.placement
            found.append((job, there if there.pool == migration.source.placement.pool else None))
    return room.lacking(found)


def gives_way(job: Job, assessment: Assessment, fleet: Fleet) -> bool:
    """Whether the fleet may move a job that runs for others: its user lets it, it can save, and no target of it ends
    with a number that a plan of others does not know."""
    evaluated, adaptation, targets = assessment.evaluated, job.spec.adaptation, job.spec.targets
    rest = None if evaluated is None else evaluated.outlook
    return (
        adaptation.gives_way is GivingWay.MOVE
        and adaptation_mode(job, fleet.policy) is AdaptationMode.AUTO
        and not (adaptation.require_approval or job.spec.only_watched or work_of(job.spec).loses_all(job.spec))
        and evaluated is not None
        and rest is not None
        and evaluated.intent is Intent.SAVE
        and evaluated.unreachable is None
        and targets.deadline is None
        and targets.budget is None
        and job.state.migration is None
        and job.overruled is None
        and not job.stops
        and fleet_move_limit(job, rest.restart, fleet.policy, fleet.now) is None
    )


def _measured_by_program(alone: Mapping[JobKey, Assessment]) -> dict[str, MeasuredJob]:
    """Of each program a job that was measured, the first by its key."""
    found: dict[str, MeasuredJob] = {}
    for key in sorted(alone):
        evaluated = alone[key].evaluated
        if isinstance(evaluated, MeasuredJob) and evaluated.intent is Intent.SAVE:
            found.setdefault(evaluated.job.workload_hash, evaluated)
    return found


def _alike(one: ProfiledJobSpec, other: ProfiledJobSpec) -> bool:
    """Whether jobs of one program do the same on the same chips, and want the same. A deadline and a budget are each
    job's own."""
    targets = one.targets
    ends = targets.deadline is not None or targets.budget is not None
    return not ends and (one.elasticity, targets) == (other.elasticity, other.targets)


def _possible(evaluated: Evaluated, room: Room, free: Mapping[str, int]) -> list[int]:
    """Entries that no gate rules out, but those that a pool has chips for and no nodes."""
    entries = [entry for entry in evaluated.entries if evaluated.offers.sure[entry] > 0.0]
    places = [evaluated.placement(entry) for entry in entries]
    fits = room.fits(evaluated.job, places)
    short = (place.chips > free.get(place.pool, 0) for place in places)
    return [entry for entry, fit, few in zip(entries, fits, short, strict=True) if fit or few]


def _shunned(evaluated: Evaluated, entry: int, pools: Set[str], limits: FleetLimits) -> bool:
    """Whether the job may not go there now. pools: those that something speaks against."""
    place = evaluated.placement(entry)
    return place.pool in pools and limits.limit_on(Intent.SAVE, evaluated.job, place) is not None


def _wished(ask: Ask, could: list[int], fits: Sequence[bool], policy: PlacementPolicySpec) -> list[int]:
    """Of a job that could not grow later, none smaller than the largest that it could have now."""
    if adaptation_mode(ask.job, policy) is AdaptationMode.AUTO:
        return could
    least = max((ask.offers[offer].chips for offer in could if fits[offer]), default=ask.offers[0].chips)
    return [offer for offer in could if ask.offers[offer].chips >= least]


class _Book:
    """Members in the making."""

    __slots__ = ("_chips", "_longest", "_now", "_number", "_patience", "_stakes")

    def __init__(self, now: float, policy: PlacementPolicySpec) -> None:
        """now: Unix seconds."""
        # A job that waits counts twice after that, and above all others after the longest wait.
        self._now, self._patience = now, policy.start_deadline.total_seconds()
        self._longest = policy.fleet.max_wait.total_seconds()
        self._number: dict[Placement, int] = {}
        self._stakes: list[Stake] = []
        self._chips: dict[str, int] = {}

    def made(self) -> MarketMembers:
        """All that were added."""
        return MarketMembers(tuple(self._number), tuple(self._stakes), self._chips)

    def add_chips(self, pool: str, chips: int) -> None:
        """Chips that somebody holds, and that others may have."""
        self._chips[pool] = self._chips.get(pool, 0) + chips

    def add_waiting(self, ask: Ask, offers: Sequence[int]) -> None:
        """A job without a place, and which of its offers it could have. Whose first choice has no price is none."""
        hourly = ask.evaluated.price(ask.offers[0])
        if not offers or hourly is None:
            return
        first = ask.offers[0].chips
        hourly = max(hourly, _FREE_CHIP * first)
        worth = [_LATER**offer * min(ask.offers[offer].chips / first, 1.0) ** _SCALING for offer in offers]
        self._stakes.append(
            Stake(
                key=ask.key,
                places=self._numbers(ask.offers[offer] for offer in offers),
                rates=floats(worth),
                # The order of its offers has their prices in it.
                prices=np.zeros(len(worth)),
                left=SHORTEST_HORIZON_SECONDS / floats(worth),
                value=hourly * self._times(ask.job),
                ahead=self._too_long(ask.job),
            )
        )

    def add_alike(self, ask: Ask, offers: Sequence[int], other: MeasuredJob) -> bool:
        """A job without a place, by what another one of its program does. Whether that is known of any of its offers
        with a price."""
        running, number = other.evaluation.running, other.number
        home, here = running.current.option[number], float(running.current.sure[number])
        known = {other.placement(entry): float(other.offers.sure[entry]) for entry in other.entries}
        known[other.evaluation.register.placements[home]] = here
        could = [(place, ask.evaluated.price(place)) for place in (ask.offers[offer] for offer in offers)]
        prices = {place: hourly for place, hourly in could if hourly is not None and known.get(place, 0.0) > 0.0}
        if not prices:
            return False
        rates, extent = floats([known[place] for place in prices]), work_of(ask.job.spec).extent(ask.job, self._now)
        dearest = max(max(hourly, _FREE_CHIP * place.chips) for place, hourly in prices.items())
        value = max(_bid(float(running.value[number]), dearest), _LEAST_VALUE * dearest)
        self._stakes.append(
            Stake(
                key=ask.key,
                places=self._numbers(prices),
                rates=rates,
                prices=floats(list(prices.values())),
                left=SHORTEST_HORIZON_SECONDS * rates.max() / rates if extent is None else extent.left / rates,
                value=value * self._times(ask.job),
                ahead=self._too_long(ask.job),
            )
        )
        return True

    def _times(self, job: Job) -> float:
        """How much more a job is worth by how long it has waited."""
        waited = max(self._now - job.waits_since, 0.0)
        return (1.0 + waited / self._patience) * (_PASSED_OVER if self._too_long(job) else 1.0)

    def _too_long(self, job: Job) -> bool:
        return self._now - job.waits_since > self._longest

    def add_running(self, evaluated: Evaluated, entries: Sequence[int]) -> None:
        """A job that was measured, and which of its entries it could have beside where it is."""
        job, rest, current = evaluated.job, evaluated.outlook, evaluated.current()
        if not isinstance(evaluated, MeasuredJob) or rest is None or current is None or current.cost_per_hour is None:
            return
        here = float(evaluated.evaluation.running.current.sure[evaluated.number])
        entries = [entry for entry in entries if evaluated.price(evaluated.placement(entry)) is not None]
        places = [current.placement, *(evaluated.placement(entry) for entry in entries)]
        rates = floats([here, *evaluated.offers.sure[entries].tolist()])
        hourly, prices = current.cost_per_hour, floats([evaluated.price(place) for place in places])
        # By what its user wants, and not by what the job has: who has little would never be given more.
        value = float(evaluated.evaluation.running.value[evaluated.number])
        dearest = max(float(prices.max()), _FREE_CHIP * max(place.chips for place in places))
        self.add_chips(current.placement.pool, current.placement.chips)
        numbers = self._numbers(places)
        self._stakes.append(
            Stake(
                key=job.key,
                places=numbers,
                rates=rates,
                prices=prices,
                left=rest.horizon * here / rates,
                value=max(_bid(value, dearest), _LEAST_VALUE * max(hourly, _FREE_CHIP * current.placement.chips)),
                here=int(numbers[0]),
                started=True,
                restart=rest.restart,
                changes=_changes(job, self._now),
            )
        )

    def _numbers(self, places: Iterable[Placement]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        number = self._number
        return np.array([number.setdefault(place, len(number)) for place in places], dtype=np.int64)


def _bid(value: float, dearest: float) -> float:
    """Dollars an hour that a job's time is worth to the fleet."""
    return value if value <= dearest else _AT_ANY_PRICE * dearest


def _changes(job: Job, now: float) -> float:
    """How often the job was moved, the less the longer ago."""
    moved = (entry for entry in job.state.history if entry.outcome is not Outcome.HELD)
    return sum(math.exp(-max(now - entry.finished_at, 0.0) / CHANGES_FADE_SECONDS) for entry in moved)
