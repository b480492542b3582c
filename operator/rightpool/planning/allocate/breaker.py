"""The breaker: few moves at once go where none has delivered yet, and one at a time where they have failed.

Outcomes count for what they came from. Those of one tenant on one pool keep that tenant from it; those of several
tenants keep everybody from the pool; those of several pools of one chip, from that chip. Failures of jobs of one size
keep those of that size away: what is wrong with a network says nothing of jobs that do not use it. Only failures on
several pools and of several tenants stop the fleet: jobs that slow themselves say nothing of anybody else's. However
many moves of one tenant fail, they count as one against what is everybody's.

What speaks against a pool stands until a move there has delivered, however long that takes: pools keep their outcomes.
Against a chip and the fleet the last day counts, because the next move may have to do with none of what failed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.outcome import MAX_OUTCOMES, JobSize, MoveOutcome
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.units import DAY
from rightpool.api.work_unit import SERVED
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.tenant import hash_of, tenant_of
from rightpool.planning.judge.crowding import crowding
from rightpool.planning.offers.evidence import BreakerOpen, Doubling, Limit, Suspected, Unproven

# What the clock of the operator that wrote an entry may be ahead of this one's.
CLOCK_SKEW_SECONDS: Final = 60.0
# One undone move out of one is no pattern, of a fleet three out of three are none.
FEWEST_OF_POOL: Final = 2
FEWEST_OF_FLEET: Final = 4
SEVERAL: Final = 2
# When one move may try again: after this long, and twice as long after each trial that fails. So a pool that is
# repaired is avoided no longer than it was bad, and one that stays bad harms fewer and fewer jobs.
FIRST_TRIAL_SECONDS: Final = 3600.0
LONGEST_TRIAL_SECONDS: Final = 7.0 * DAY
# How many moves may be under way where none has delivered yet. As many of one tenant as make a pattern: fewer would
# find out later, more would find out nothing else. And one of another tenant, whose jobs may be healthier.
UNPROVEN_OF_TENANT: Final = FEWEST_OF_POOL
UNPROVEN_OF_POOL: Final = UNPROVEN_OF_TENANT + 1

_WORSE: Final = frozenset(
    {
        Reason.SOURCE_NOT_HELD,
        Reason.NO_ROOM_TO_RETURN,
        Reason.RETURN_DOES_NOT_PAY,
        Reason.START_DEADLINE_EXCEEDED,
        Reason.PLACEMENT_DISALLOWED,
    }
)

Outcomes = Mapping[str, tuple[MoveOutcome, ...]]
"""Outcomes by the pool that the moves went to, the oldest first."""


class Going(NamedTuple):
    """A move that is being made."""

    pool: str
    """Name of the AcceleratorPool that it goes to."""
    size: JobSize
    """Class of its number of chips."""
    tenant: str
    """Namespace of the job."""
    chips: int
    """How many it is to have there."""
    there: bool = False
    """Whether it has left for them, so that the pool shows them in use."""

    @classmethod
    def of(cls, job: Job, target: Placement) -> Going:
        """A job's move to a placement."""
        migration = job.state.migration
        there = migration is not None and migration.stopped_at is not None
        return cls(target.pool, JobSize.of(target), tenant_of(job), target.chips, there)


def outcomes_of(
    jobs: Iterable[Job], kept: Outcomes, now: float, pools: Mapping[str, Pool] = MappingProxyType({})
) -> dict[str, tuple[MoveOutcome, ...]]:
    """What jobs show of the last day, with what pools have kept. pools: as they are now, by name."""
    found: dict[str, dict[str, MoveOutcome]] = {
        pool: {outcome.move: outcome for outcome in outcomes if _seen(outcome.finished_at, now)}
        for pool, outcomes in kept.items()
    }
    for job in jobs:
        for entry in job.state.history:
            undone = _undone(entry)
            if undone is None or now - entry.finished_at > DAY or not _seen(entry.finished_at, now):
                continue
            move, pool = hash_of(f"{job.uid}/{entry.id}"), pools.get(entry.target.pool)
            known = found.get(entry.target.pool, {}).get(move)
            in_use = 0 if pool is None else max(pool.total - pool.free, 0)
            ratio = None if undone else _on_same_chips(entry)
            made = MoveOutcome(
                move=move,
                tenant=tenant_of(job),
                started_at=entry.started_at,
                finished_at=entry.finished_at,
                size=JobSize.of(entry.target),
                undone=undone,
                ratio=ratio,
                doubt=None if ratio is None else entry.doubt,
                in_use=0 if ratio is None else in_use if known is None else known.in_use,
            )
            found.setdefault(entry.target.pool, {})[made.move] = made
    return {pool: _newest(outcomes.values()) for pool, outcomes in found.items() if outcomes}


class Breaker:
    """What the outcomes of moves allow."""

    __slots__ = (
        "_against",
        "_chips",
        "_crowding",
        "_in_use",
        "_now",
        "_outcomes",
        "_policy",
        "_proven",
        "_under_way",
        "stop",
    )

    stop: BreakerOpen | None
    """What stops the whole fleet, but for one move at a time that tries; None where nothing does."""

    def __init__(
        self,
        outcomes: Outcomes,
        pools: Mapping[str, Pool],
        policy: PlacementPolicySpec,
        under_way: Iterable[Going],
        now: float,
    ) -> None:
        self._outcomes, self._policy, self._now = outcomes, policy.circuit_breaker, now
        self._chips = {name: pool.accelerator.key for name, pool in pools.items()}
        self._in_use = {name: pool.total - pool.free for name, pool in pools.items()}
        self._crowding = crowding(outcomes, now)
        self._under_way = list(under_way)
        self._proven = {
            (pool, outcome.size) for pool, listed in outcomes.items() for outcome in listed if not outcome.undone
        }
        self._against: dict[tuple[str, JobSize, str | None], tuple[_Finding, ...]] = {}
        fleet = self._of_pools(outcomes)
        self.stop = None
        if fleet is not None:
            allowed = float(self._policy.max_rolled_back_share)
            self.stop = BreakerOpen(fleet.undone, fleet.judged, allowed, fleet.next_trial)

    def limit_on(self, move: Going) -> Limit | None:
        """Why a move may not begin now; None where it may, or where it is the one that tries."""
        for found in self._findings(move.pool, move.size, move.tenant):
            if self._now < found.limit.next_trial or any(found.covers(at) for at in self._under_way):
                return found.limit
        return self._paced(move)

    def against(self, pool: str) -> Limit | None:
        """What holds every tenant's jobs, or those of one size, back from a pool; None where nothing does."""
        found = [finding.limit for size in JobSize for finding in self._findings(pool, size, None)]
        own = [limit for limit in found if isinstance(limit, Suspected) and limit.chip is None]
        return next(iter(own or found), None)

    def admit(self, move: Going) -> None:
        """A move begins."""
        self._under_way.append(move)

    def _paced(self, move: Going) -> Limit | None:
        """That others try the pool first. Where that has delivered, its use is at most doubled before the next verdict,
        since jobs may slow each other there, and where they do, one comes after another. Not where the policy lets all
        moves fail."""
        if self._policy.max_rolled_back_share >= 1:
            return None
        going = [at for at in self._under_way if at.pool == move.pool]
        if (move.pool, move.size) not in self._proven:
            trying = [at for at in going if (at.pool, at.size) not in self._proven]
            own = sum(at.tenant == move.tenant for at in trying)
            waits = own >= UNPROVEN_OF_TENANT or len(trying) >= UNPROVEN_OF_POOL
            return Unproven(move.pool) if waits else None
        in_use = self._in_use.get(move.pool)
        if in_use is None or not going:
            return None
        judged, coming = in_use - sum(at.chips for at in going if at.there), sum(at.chips for at in going)
        if move.pool in self._crowding and self._crowding[move.pool].at(in_use + coming) < 1.0:
            return Doubling(move.pool, coming, judged)
        doubles = coming + move.chips > judged and len(going) >= UNPROVEN_OF_TENANT
        return Doubling(move.pool, coming, judged) if doubles else None

    def _findings(self, pool: str, size: JobSize, tenant: str | None) -> tuple[_Finding, ...]:
        """What speaks against moves of a tenant's jobs of a size to a pool, the narrowest first; tenant: None for what
        does whoever's they are. Many jobs of a fleet ask for the same."""
        key = pool, size, tenant
        if key not in self._against:
            self._against[key] = tuple(self._made(pool, size, tenant))
        return self._against[key]

    def _made(self, pool: str, size: JobSize, tenant: str | None) -> Iterator[_Finding]:
        everyones = [(pool, outcome) for outcome in self._outcomes.get(pool, ())]
        if tenant is not None:
            for found in self._of_size(size, [at for at in everyones if at[1].tenant == tenant]):
                yield _Finding(found.against(pool, own=True), {pool}, tenant)
            yield from self._findings(pool, size, None)
            return
        for found in self._of_size(size, everyones, tenants=SEVERAL):
            yield _Finding(found.against(pool), {pool})
        chip = self._chips.get(pool)
        alike = {name for name, key in self._chips.items() if key == chip}
        of_chip = self._of_pools(alike)
        if of_chip is not None:
            yield _Finding(of_chip.against(pool, chip), alike)
        if self.stop is not None:
            yield _Finding(self.stop)

    def _of_size(
        self, size: JobSize, outcomes: list[tuple[str, MoveOutcome]], *, tenants: int = 1
    ) -> Iterator[_Pattern]:
        """What speaks against jobs of a size on a pool: failures of jobs of that size, and of jobs of several sizes."""
        alike = [at for at in outcomes if at[1].size is size]
        for found in (
            self._pattern(alike, FEWEST_OF_POOL, tenants=tenants),
            self._pattern(outcomes, FEWEST_OF_POOL, tenants=tenants, sizes=SEVERAL),
        ):
            if found is not None:
                yield found

    def _of_pools(self, pools: Iterable[str]) -> _Pattern | None:
        """What speaks against all of these pools: failures of the last day, on several and of several tenants."""
        recent = [
            (pool, outcome)
            for pool in pools
            for outcome in self._outcomes.get(pool, ())
            if self._now - outcome.finished_at < DAY
        ]
        recent.sort(key=lambda at: _when(at[1]))
        return self._pattern(recent, FEWEST_OF_FLEET, pools=SEVERAL, tenants=SEVERAL)

    def _pattern(
        self,
        outcomes: list[tuple[str, MoveOutcome]],
        fewest: int,
        *,
        pools: int = 1,
        tenants: int = 1,
        sizes: int = 1,
    ) -> _Pattern | None:
        """What speaks against a scope; None where nothing does. A move that was delivered after that ends it.

        outcomes: with their pools, the oldest first. pools, tenants, sizes: of how many the failures have to be.
        """
        allowed, window = float(self._policy.max_rolled_back_share), self._policy.window
        judged = _Judged(window)
        rounds, last = 0, 0.0
        for pool, outcome in outcomes:
            if rounds and not outcome.undone:
                judged, rounds = _Judged(window), 0
            judged.add(pool, outcome)
            if not outcome.undone:
                continue
            found = (
                len(judged.last) >= min(fewest, window)
                and judged.undone > allowed * len(judged.last)
                and len(judged.pools) >= pools
                and (tenants < SEVERAL or judged.by_others(allowed))
                and len(judged.sizes) >= sizes
            )
            if found and (not rounds or outcome.started_at >= last):
                rounds += 1  # moves that began before the last failure was known are of the same round
            last = outcome.finished_at
        return _Pattern(judged.undone, len(judged.last), rounds, last) if rounds else None


class _Judged:
    """The last moves that were judged, and how many of them were undone: in all, and of each pool, tenant and size."""

    __slots__ = ("last", "pools", "sizes", "tenants", "undone", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.last: deque[tuple[str, MoveOutcome]] = deque()
        self.undone = 0
        self.pools: dict[str, int] = {}
        self.tenants: dict[str, int] = {}
        self.sizes: dict[str, int] = {}

    def by_others(self, allowed: float) -> bool:
        """Whether it is still a pattern where all moves of the tenant with the most undone ones count as one."""
        worst = max(self.tenants, key=lambda tenant: (self.tenants[tenant], tenant), default=None)
        others = [outcome.undone for _, outcome in self.last if outcome.tenant != worst]
        return sum(others) >= FEWEST_OF_POOL and 1 + sum(others) > allowed * (1 + len(others))

    def add(self, pool: str, outcome: MoveOutcome) -> None:
        """One more, for which the oldest goes where there are too many."""
        self.last.append((pool, outcome))
        if outcome.undone:
            self._count(pool, outcome, 1)
        if len(self.last) > self.window:
            pool, outcome = self.last.popleft()
            if outcome.undone:
                self._count(pool, outcome, -1)

    def _count(self, pool: str, outcome: MoveOutcome, change: int) -> None:
        self.undone += change
        for counts, value in ((self.pools, pool), (self.tenants, outcome.tenant), (self.sizes, outcome.size)):
            counts[value] = counts.get(value, 0) + change
            if not counts[value]:
                del counts[value]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Of the last `judged` moves `undone` were undone; `rounds` of failures since that was a pattern, the newest ended
    at `last`."""

    undone: int
    judged: int
    rounds: int
    last: float

    @property
    def next_trial(self) -> float:
        """Unix seconds from which one move may try."""
        return self.last + min(FIRST_TRIAL_SECONDS * 2.0 ** (self.rounds - 1), LONGEST_TRIAL_SECONDS)

    def against(self, pool: str, chip: str | None = None, *, own: bool = False) -> Suspected:
        """What it says of a pool."""
        return Suspected(pool, chip, own, self.undone, self.judged, self.next_trial)


@dataclass(frozen=True, slots=True)
class _Finding:
    """What speaks against some moves, of which one at a time may try."""

    limit: Suspected | BreakerOpen
    pools: Collection[str] | None = None
    """Which pools they go to; None for all."""
    tenant: str | None = None
    """Whose they are; None for everybody's."""

    def covers(self, move: Going) -> bool:
        """Whether a move is one of them."""
        return (self.pools is None or move.pool in self.pools) and self.tenant in (None, move.tenant)


def _undone(entry: LedgerEntry) -> bool | None:
    """Whether a move was undone, or should have been; None where it proves nothing. What the user edits is not the
    operator's to answer for, and a start is no move."""
    if entry.action in (Action.UPDATE, Action.START):
        return None
    if entry.reason == Reason.START_PREVENTED:
        return None
    if entry.outcome is Outcome.VERIFIED:
        return False
    if entry.outcome is Outcome.ROLLED_BACK or (entry.outcome is Outcome.FAILED and entry.reason in _WORSE):
        return True
    return None


def _on_same_chips(entry: LedgerEntry) -> float | None:
    """What a job did after a move ÷ what it did before, where it has as many of the same chips, without a fault; else
    None."""
    before, after, chip = entry.baseline_throughput, entry.realised_throughput, entry.source_chip
    if entry.throttled or entry.healthy_baseline_throughput is not None or not before or not after:
        return None
    if entry.unit in SERVED:  # these say what dollars bring, and not what chips do
        return None
    same = chip is not None and chip == entry.target_chip and entry.source.chips == entry.target.chips
    return after / before if same else None


def _seen(finished_at: float, now: float) -> bool:
    """Whether it is over by now. One that ends later is an error of a clock, and would hold all others back."""
    return finished_at <= now + CLOCK_SKEW_SECONDS


def _newest(outcomes: Iterable[MoveOutcome]) -> tuple[MoveOutcome, ...]:
    """The newest ones, as many of each tenant and size: what speaks against one must not be pushed out by the others'
    moves."""
    ranked: list[tuple[int, MoveOutcome]] = []
    of_group: Counter[tuple[str, JobSize]] = Counter()
    for outcome in sorted(outcomes, key=_when, reverse=True):
        group = outcome.tenant, outcome.size
        of_group[group] += 1
        ranked.append((of_group[group], outcome))
    ranked.sort(key=lambda entry: entry[0])  # of equal rank the newest stay first
    return tuple(sorted((outcome for _, outcome in ranked[:MAX_OUTCOMES]), key=_when))


def _when(outcome: MoveOutcome) -> tuple[float, str]:
    return outcome.finished_at, outcome.move
