"""Hysteresis: what holds a move back that pays by the numbers, so that a fleet does not chase them.

Limits of one job: time since its last move and its start, moves in its life, saves that do not come. Limits of the
fleet: moves at once, moves an hour, and the breaker (breaker.py).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.choices import FleetMode, GivingWay
from rightpool.api.conditions import Reason
from rightpool.api.estimate import Z80, Estimate
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.units import HOUR
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.breaker import CLOCK_SKEW_SECONDS, Breaker, Going, Outcomes, outcomes_of
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.evidence import (
    RESTART_SHARE,
    BreakerOpen,
    CoolingDown,
    FewWindows,
    Limit,
    MovedOften,
    RestartsOften,
    RunsShortly,
    SaveFailed,
    SaveMissing,
    TooManyAnHour,
    TooManyAtOnce,
)
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.running import MIN_PROBABILITY
from rightpool.planning.work.outlook import Outlook
from rightpool.planning.work.saving import saved_since, saves_when_asked
from rightpool.planning.work.unsaved import late_save, unsaved
from rightpool.profiles.steadiness import HOURS_SD, SPANS, doubt_of_ratio

_UNTOUCHED: Final = frozenset({Outcome.HELD})
# A save that does not come is asked for again after this long, or the cooldown; twice as long each time, up to a day.
FIRST_RETRY_SECONDS: Final = 900.0
LONGEST_RETRY_SECONDS: Final = 86_400.0
FREE_RESTARTS: Final = 2
"""Moves of a job that lets the fleet move it that count to no share of its time."""
# Of the time to a deadline that is missed anyway, what may go by before a move that makes it later by less.
WAITED_SHARE: Final = 0.25
# Where the policy does not say it, a large fleet may have more of both: one for so many jobs that have a place.
_AT_ONCE: Final = (10, 50)
_AN_HOUR: Final = (60, 10)


class FleetLimits:
    """The fleet's allowance in one cycle; `admit` uses it up.

    A migration that was decided on and waits for its user's approval uses up nothing; once approved it has to be
    admitted.
    """

    __slots__ = ("_an_hour", "_at_once", "_breaker", "_counted", "_moves", "_share", "_under_way", "outcomes")

    outcomes: Outcomes
    """Of the last moves to each pool, those of now with what pools have kept."""

    def __init__(
        self,
        jobs: Iterable[Job],
        policy: PlacementPolicySpec,
        now: float,
        *,
        outcomes: Outcomes | None = None,
        pools: Mapping[str, Pool] | None = None,
    ) -> None:
        """outcomes: what pools have kept; pools: by name."""
        jobs, namespaces = list(jobs), set[str]()
        namespaces.update(job.key.namespace for job in jobs if job.state.finished is None)
        placed = sum(job.state.revision is not None and job.state.finished is None for job in jobs)
        self._at_once = most = _allowed(policy.max_concurrent_migrations, _AT_ONCE, placed)
        self._an_hour = _allowed(policy.max_moves_per_hour, _AN_HOUR, placed)
        jobs = [job for job in jobs if job.state.migration is not None or job.state.history]
        # Where there are several namespaces, a quarter of the moves at once is for others, whatever one does with its.
        self._share = most - max(1, most // 4) if len(namespaces) > 1 and most > 1 else most
        self._under_way: Counter[str] = Counter()
        self._moves = 0
        going: list[Going] = []
        for job in jobs:
            migration = job.state.migration
            # One that is stopped holds nothing, and may be for days.
            idle = job.deleting or job.state.pause is not None or (migration is not None and migration.given_up)
            if migration is not None and not idle and contradiction(job) is None and not asks_first(job):
                self._under_way[job.key.namespace] += 1
                self._moves += migration.created_at > now - HOUR and not migration.demanded
                if not migration.demanded:
                    going.append(Going.of(job, (migration.abandoned or migration.target).placement))
            for entry in job.state.history:
                if entry.finished_at > now + CLOCK_SKEW_SECONDS:
                    continue  # nobody has seen it: it would hold all others back until then
                if entry.started_at > now - HOUR and entry.outcome not in _UNTOUCHED and _chosen(entry):
                    self._moves += 1
        # What counts for all: of each namespace no more than its share.
        self._counted = sum(min(count, self._share) for count in self._under_way.values())
        pools = pools or {}
        self.outcomes = outcomes_of(jobs, outcomes or {}, now, pools)
        self._breaker = Breaker(self.outcomes, pools, policy, going, now)

    @property
    def stop(self) -> BreakerOpen | None:
        """Set where too many of the last moves, on several pools and of several tenants, had to be undone."""
        return self._breaker.stop

    def against(self, pool: str) -> Limit | None:
        """What holds moves to a pool back, whoever's they are; None where nothing does."""
        return self._breaker.against(pool)

    def concurrency_limit(self, job: Job) -> Limit | None:
        """Why no more jobs of this one's namespace may be moved at once; None where they may. What a namespace's users
        demand above its share takes no place of others."""
        own = self._under_way[job.key.namespace]
        if self._counted >= self._at_once:
            return TooManyAtOnce(self._counted)
        return TooManyAtOnce(own, of_namespace=True) if own >= self._share else None

    def limit_on(self, intent: Intent, job: Job, target: Placement) -> Limit | None:
        """Why no further move may begin now; None where it may.

        What the user demands by an edit is not asked about. A job that must leave because somebody has changed its
        pool waits for the number of moves at once alone.
        """
        if intent is Intent.LEAVE:
            return self.concurrency_limit(job)
        return self.number_limit(job) or self._breaker.limit_on(Going.of(job, target))

    def number_limit(self, job: Job) -> Limit | None:
        """Why no further move of this job may begin now, wherever to; None where it may."""
        an_hour = TooManyAnHour(self._moves) if self._moves >= self._an_hour else None
        return self.concurrency_limit(job) or an_hour

    def admit(self, job: Job, target: Placement, *, demanded: bool) -> None:
        """A move begins. demanded: by the user's own edit."""
        self._counted += self._under_way[job.key.namespace] < self._share
        self._under_way[job.key.namespace] += 1
        self._moves += not demanded
        if not demanded:
            self._breaker.admit(Going.of(job, target))


def _allowed(asked: int | None, usual: tuple[int, int], placed: int) -> int:
    least, jobs_each = usual
    return max(least, placed // jobs_each) if asked is None else asked


def asks_first(job: Job) -> bool:
    """Whether a migration that was decided on, and has not begun, needs its user's approval, or has just got it."""
    migration = job.state.migration
    return (
        migration is not None
        and migration.phase is Phase.PLANNED
        and job.spec.adaptation.require_approval
        and not migration.demanded
    )


def save_limit(job: Job, now: float) -> Limit | None:
    """Why a job that did not save is not asked again yet; None where it is.

    A save that was seen since, which the program can do after all, and an edit end the wait. After the second request
    only a save that just came does, with which the job can leave: a save that takes longer than it is waited for comes
    after each request, and would bring about the next one. In mode Periodic saves come by themselves, and say nothing
    of how soon the next one will. Who has failed in a save that was asked for may save by itself and yet fail again:
    each time costs work and one of the failures that its Job may have, so that it is asked after a day, and each
    further time after twice as long.
    """
    held = unsaved(job.state.history)
    if not held or job.edited:
        return None
    failed = [entry for entry in held if entry.reason == Reason.SAVE_FAILED]
    if failed:
        times = sum(entry.attempts for entry in failed)
        next_at = failed[-1].finished_at + LONGEST_RETRY_SECONDS * 2.0 ** min(times - 1, 16)
        if now < next_at:
            return SaveFailed(times, next_at)
    attempts, asked_at = sum(entry.attempts for entry in held), held[-1].finished_at
    saved = saved_since(job, asked_at, before=asked_at) if saves_when_asked(job) else None
    if (saved is not None and attempts == 1) or late_save(job, now) is not None:
        return None
    first = max(FIRST_RETRY_SECONDS, job.spec.adaptation.cooldown.total_seconds())
    wait = min(first * 2.0 ** min(attempts - 1, 16), max(first, LONGEST_RETRY_SECONDS))
    late = saved - asked_at if saved is not None and saved - asked_at <= first else None
    return SaveMissing(attempts, asked_at + wait, late) if now < asked_at + wait else None


def job_limit(
    job: Job,
    intent: Intent,
    policy: PlacementPolicySpec,
    now: float,
    *,
    met: bool = True,
    restart: float | None = None,
) -> Limit | None:
    """Why this job may not be moved yet; None where it may. It does not stay where the spec does not allow it, and a
    target that is missed is repaired however often it was moved to save.

    met: whether the move meets the target that it is for. What only comes nearer to it saves, and waits as such.
    restart: seconds that it takes, where that is known.
    """
    if intent is Intent.LEAVE:
        return None
    lets = job.spec.adaptation.gives_way is GivingWay.MOVE and policy.fleet.mode is FleetMode.AUTO
    if lets and restart is not None and intent is Intent.SAVE:
        return fleet_move_limit(job, restart, policy, now)
    adaptation, state = job.spec.adaptation, job.state
    repairs = intent is Intent.REPAIR and adaptation.max_moves > 0
    if state.moves >= adaptation.max_moves and not repairs:
        return MovedOften(state.moves, adaptation.max_moves)
    cooldown = adaptation.cooldown.total_seconds()
    if state.last_move_at is not None and now - state.last_move_at < cooldown and not (repairs and met):
        return CoolingDown(state.last_move_at, cooldown)
    shortest = policy.min_run_time.total_seconds()
    since = None if state.revision is None else state.revision.since
    if since is not None and now - since < shortest:
        return RunsShortly(since, shortest)
    return None


def fleet_move_limit(job: Job, restart: float, policy: PlacementPolicySpec, now: float) -> Limit | None:
    """Why a job that lets the fleet move it may not be moved yet; None where it may. restart: seconds that it takes.

    Not a number of moves in its life: a long job would use it up in its first hours. Its restarts may take a share of
    its time, to which the first two do not count, then or later: a job is short of chips most in its first minutes.
    """
    unsaved, state = save_limit(job, now), job.state
    if unsaved is not None:
        return unsaved
    shortest = policy.min_run_time.total_seconds()
    since = None if state.revision is None else state.revision.since
    if since is None or now - since < shortest:
        return RunsShortly(now if since is None else since, shortest)
    moved = [entry for entry in state.history if _chosen(entry) and entry.outcome not in _UNTOUCHED]
    taken = sum([*(entry.lost_seconds for entry in moved), restart][FREE_RESTARTS:])
    next_at = job.created_at + taken / RESTART_SHARE
    return RestartsOften(len(moved), taken, next_at) if now < next_at else None


def windows_limit(job: Job, assessment: Assessment, now: float, *, met: bool) -> Limit | None:
    """Why a move waits for more windows of where the job is. met: whether it meets the target that it is for."""
    intent, decision, evaluated = assessment.intent, assessment.decision, assessment.evaluated
    if evaluated is None or assessment.taken is None or decision.candidate is None:
        return None
    if intent is Intent.SAVE or not met:
        return baseline_limit(job, evaluated.saving(assessment.taken), now)
    here, there, rest = evaluated.current(), decision.candidate.throughput, evaluated.outlook
    if decision.reason is not Reason.DEADLINE_MISSED or there is None or here is None or rest is None:
        return None
    slow = here.throughput
    return deadline_limit(job, 0.0 if slow is None else slow.median, there, rest, now)


def baseline_limit(job: Job, saved: float, now: float) -> Limit | None:
    """Why a move that saves this share waits for more windows; None where it does not.

    It is judged by what was before it. An hour of windows is waited for, where by what two hours of a job differ by
    themselves, at 10%, all of the saving may turn out to be noise.
    """
    few = _few_windows(job, now)
    if few is None or saved >= 1.0:
        return None
    seen = int((now - few.since) / few.window)
    sd, _ = doubt_of_ratio(job.observed.variation, max(seen, 1), SPANS[-1], HOURS_SD)
    return few if saved < -math.expm1(-Z80 * sd) else None


def deadline_limit(job: Job, here: float, there: Estimate, outlook: Outlook, now: float) -> Limit | None:
    """Why a move for a deadline waits for more windows; None where it does not. here, there: throughput.

    The first windows of a job may be an evaluation. They are waited for where the deadline is met as surely after them,
    and, where it is not met anyway, where that takes little of the time that is left.
    """
    few = _few_windows(job, now)
    if few is None or math.isnan(outlook.work_left):
        return None
    wait, time = few.since + few.wanted * few.window - now, outlook.time_left - outlook.restart
    at_once = _in_time(there, outlook.work_left, time)
    later = _in_time(there, outlook.work_left - here * wait, time - wait)
    waits = later >= MIN_PROBABILITY if at_once >= MIN_PROBABILITY else wait <= WAITED_SHARE * outlook.time_left
    return replace(few, for_deadline=True) if waits else None


def _few_windows(job: Job, now: float) -> FewWindows | None:
    """That the job has run where it is for less than an hour of windows; None where it has. A command that knows no
    more than the status comes to the same."""
    revision = job.state.revision
    window = job.spec.profiling.window.total_seconds()
    wanted = min(SPANS[-1], math.ceil(HOUR / window))
    if revision is None or revision.since is None or now - revision.since >= wanted * window:
        return None
    return FewWindows(revision.since, wanted, window)


def _in_time(rate: Estimate, left: float, seconds: float) -> float:
    """P(so many samples are done in so many seconds)."""
    return rate.probability_above(left / seconds) if seconds > 0.0 else 0.0


def _chosen(entry: LedgerEntry) -> bool:
    """Whether the operator chose the move; what the user edits is not the operator's to answer for, and a start is no
    move."""
    return entry.action not in (Action.UPDATE, Action.START)
