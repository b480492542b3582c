"""The breaker: where moves have failed no more of them go, except for one at a time that tries.

Outcomes count for what they came from. Those of one tenant on one pool keep that tenant from it; those of several
tenants keep everybody from the pool; those of several pools of one chip, from that chip. Failures of jobs of one size
keep those of that size away: what is wrong with a network says nothing of jobs that do not use it. Only failures on
several pools and of several tenants stop the fleet: jobs that slow themselves say nothing of anybody else's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.outcome import MAX_OUTCOMES, JobSize, MoveOutcome
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.pool import Pool
from rightpool.planning.evidence import BreakerOpen, Limit, Suspected
from rightpool.planning.job import Job

# It forgets after a day: what was wrong may have been repaired.
BREAKER_MEMORY_SECONDS: Final = 86_400.0
# What the clock of the operator that wrote an entry may be ahead of this one's.
CLOCK_SKEW_SECONDS: Final = 60.0
# One undone move out of one is no pattern, of a fleet three out of three are none.
FEWEST_OF_POOL: Final = 2
FEWEST_OF_FLEET: Final = 4
# When one move may try again: after this long, twice as long after each failure.
FIRST_TRIAL_SECONDS: Final = 3600.0
SEVERAL: Final = 2

_WORSE: Final = frozenset(
    {Reason.SOURCE_NOT_HELD, Reason.NO_ROOM_TO_RETURN, Reason.RETURN_DOES_NOT_PAY, Reason.START_DEADLINE_EXCEEDED}
)

Outcomes = Mapping[str, tuple[MoveOutcome, ...]]
"""Outcomes by the pool that the moves went to, the oldest first."""


def outcomes_of(jobs: Iterable[Job], kept: Outcomes, now: float) -> dict[str, tuple[MoveOutcome, ...]]:
    """What jobs show of the last day, with what pools have kept of it; the newest of each pool."""
    found: dict[str, dict[str, MoveOutcome]] = {
        pool: {outcome.move: outcome for outcome in outcomes if _counts(outcome, now)}
        for pool, outcomes in kept.items()
    }
    for job in jobs:
        for entry in job.state.history:
            undone = _undone(entry)
            if undone is None or now - entry.finished_at > BREAKER_MEMORY_SECONDS:
                continue
            made = MoveOutcome(
                _hash(f"{job.uid}/{entry.id}"), tenant_of(job), entry.finished_at, JobSize.of(entry.target), undone
            )
            if _counts(made, now):
                found.setdefault(entry.target.pool, {})[made.move] = made
    return {
        pool: tuple(sorted(outcomes.values(), key=lambda outcome: (outcome.finished_at, outcome.move)))[-MAX_OUTCOMES:]
        for pool, outcomes in found.items()
        if outcomes
    }


def tenant_of(job: Job) -> str:
    """The tenant that a job is of."""
    return _hash(job.key.namespace)


class Breaker:
    """What the outcomes of the last day allow. under_way: moves that are being made, by pool and tenant."""

    __slots__ = ("_chips", "_fleet", "_now", "_outcomes", "_policy", "_under_way")

    def __init__(
        self,
        outcomes: Outcomes,
        pools: Mapping[str, Pool],
        policy: PlacementPolicySpec,
        under_way: Iterable[tuple[str, str]],
        now: float,
    ) -> None:
        self._outcomes, self._policy, self._now = outcomes, policy, now
        self._chips = {name: pool.accelerator.key for name, pool in pools.items()}
        self._under_way = list(under_way)
        everything = [(pool, outcome) for pool, listed in outcomes.items() for outcome in listed]
        self._fleet = self._pattern(everything, FEWEST_OF_FLEET, pools=SEVERAL, tenants=SEVERAL)

    @property
    def stop(self) -> BreakerOpen | None:
        """What stops the whole fleet, but for one move at a time that tries; None where nothing does."""
        if self._fleet is None:
            return None
        allowed = float(self._policy.circuit_breaker.max_rolled_back_share)
        return BreakerOpen(self._fleet.undone, self._fleet.judged, allowed, self._fleet.next_trial)

    def refusal(self, target: Placement, tenant: str) -> Limit | None:
        """Why a tenant's job may not be moved to a pool now; None where it may, or where it is the one that tries."""
        pool, size = target.pool, JobSize.of(target)
        own = [(pool, outcome) for outcome in self._outcomes.get(pool, ()) if outcome.tenant == tenant]
        found = self._against(own, size)
        if found is not None and not self._may_try(found, {(pool, tenant)}):
            return Suspected(pool, None, True, found.undone, found.judged, found.next_trial)
        everyones = [(pool, outcome) for outcome in self._outcomes.get(pool, ())]
        found = self._against(everyones, size, tenants=SEVERAL)
        if found is not None and not self._may_try(found, {at for at in self._under_way if at[0] == pool}):
            return Suspected(pool, None, False, found.undone, found.judged, found.next_trial)
        chip = self._chips.get(pool)
        alike = {name for name, key in self._chips.items() if key == chip}
        found = self._of_chip(chip)
        if found is not None and not self._may_try(found, {at for at in self._under_way if at[0] in alike}):
            return Suspected(pool, chip, False, found.undone, found.judged, found.next_trial)
        return None if self._fleet is None or self._may_try(self._fleet, set(self._under_way)) else self.stop

    def against(self, pool: str) -> Limit | None:
        """What holds every tenant's jobs, or those of one size, back from a pool; None where nothing does."""
        everyones = [(pool, outcome) for outcome in self._outcomes.get(pool, ())]
        for size in JobSize:
            found = self._against(everyones, size, tenants=SEVERAL)
            if found is not None:
                return Suspected(pool, None, False, found.undone, found.judged, found.next_trial)
        chip = self._chips.get(pool)
        found = None if chip is None else self._of_chip(chip)
        if found is not None:
            return Suspected(pool, chip, False, found.undone, found.judged, found.next_trial)
        return self.stop

    def admit(self, pool: str, tenant: str) -> None:
        """A move to a pool begins."""
        self._under_way.append((pool, tenant))

    def _may_try(self, pattern: _Pattern, scope: set[tuple[str, str]]) -> bool:
        """Whether one move may try now: none is trying, and the last failure was long enough ago."""
        return self._now >= pattern.next_trial and not any(at in scope for at in self._under_way)

    def _against(self, outcomes: list[tuple[str, MoveOutcome]], size: JobSize, *, tenants: int = 1) -> _Pattern | None:
        """What speaks against jobs of a size on a pool: failures of jobs of that size, or of several sizes."""
        alike = [at for at in outcomes if at[1].size is size]
        found = self._pattern(alike, FEWEST_OF_POOL, tenants=tenants)
        return found or self._pattern(outcomes, FEWEST_OF_POOL, tenants=tenants, sizes=SEVERAL)

    def _of_chip(self, chip: str | None) -> _Pattern | None:
        """What speaks against all pools with a chip."""
        alike = [name for name, key in self._chips.items() if key == chip]
        outcomes = [(name, outcome) for name in alike for outcome in self._outcomes.get(name, ())]
        return self._pattern(outcomes, FEWEST_OF_FLEET, pools=SEVERAL, tenants=SEVERAL)

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

        pools, tenants, sizes: of how many the failures have to be.
        """
        breaker = self._policy.circuit_breaker
        allowed, window = float(breaker.max_rolled_back_share), breaker.window
        judged: list[tuple[str, MoveOutcome]] = []
        failures = 0
        for at in sorted(outcomes, key=lambda at: (at[1].finished_at, at[1].move)):
            if failures and not at[1].undone:
                judged, failures = [at], 0
                continue
            judged = [*judged, at][-window:]
            undone = [at for at in judged if at[1].undone]
            pattern = len(judged) >= min(fewest, window) and len(undone) > allowed * len(judged)
            of_pools, of_tenants = {pool for pool, _ in undone}, {outcome.tenant for _, outcome in undone}
            enough = len(of_pools) >= pools and len(of_tenants) >= tenants
            if at[1].undone and pattern and enough and len({outcome.size for _, outcome in undone}) >= sizes:
                failures += 1
        if not failures:
            return None
        undone = [at for at in judged if at[1].undone]
        return _Pattern(len(undone), len(judged), failures, max(outcome.finished_at for _, outcome in undone))


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Of the last `judged` moves `undone` were undone; `failures` since that was a pattern, the newest at `last`."""

    undone: int
    judged: int
    failures: int
    last: float

    @property
    def next_trial(self) -> float:
        """Unix seconds from which one move may try."""
        return self.last + min(FIRST_TRIAL_SECONDS * 2.0 ** (self.failures - 1), BREAKER_MEMORY_SECONDS)


def _undone(entry: LedgerEntry) -> bool | None:
    """Whether a move was undone, or should have been; None where it proves nothing. What the user edits is not the
    operator's to answer for, and a start is no move."""
    if entry.action in (Action.UPDATE, Action.START):
        return None
    if entry.outcome is Outcome.VERIFIED:
        return False
    if entry.outcome is Outcome.ROLLED_BACK or (entry.outcome is Outcome.FAILED and entry.reason in _WORSE):
        return True
    return None


def _counts(outcome: MoveOutcome, now: float) -> bool:
    """Not older than a day; what is still to come nobody has seen, and it would hold all others back until then."""
    return now - BREAKER_MEMORY_SECONDS < outcome.finished_at <= now + CLOCK_SKEW_SECONDS


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
