"""Hysteresis: what holds a move back that pays by the numbers, so that a fleet does not chase them.

Limits of one job: time since its last move and its start, moves in its life. Limits of the fleet: moves at once, moves
an hour, and a circuit breaker that opens when too many of the last moves had to be undone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.contradiction import contradiction
from rightpool.planning.decision import Action
from rightpool.planning.ledger import LedgerEntry, Outcome
from rightpool.planning.snapshot import JobState
from rightpool.planning.survey import Intent
from rightpool.planning.wording import HOUR, share, span

# What the breaker judges: it forgets after a day, else it could never close, because nothing moves while it is open.
BREAKER_MEMORY_SECONDS: Final = 86_400.0
# What the clock of the operator that wrote an entry may be ahead of this one's.
CLOCK_SKEW_SECONDS: Final = 60.0
# One undone move out of one is no pattern.
BREAKER_FEWEST: Final = 4

_JUDGED: Final = frozenset({Outcome.VERIFIED, Outcome.ROLLED_BACK, Outcome.FAILED})
_UNTOUCHED: Final = frozenset({Outcome.HELD})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a move has to wait, and for what."""

    reason: Reason
    message: str


class FleetLimits:
    """The fleet's allowance in one cycle; `admit` uses it up."""

    __slots__ = ("_breaker", "_moves", "_policy", "_under_way")

    def __init__(self, jobs: Iterable[JobState], policy: PlacementPolicySpec, now: float) -> None:
        self._policy = policy
        self._under_way = 0
        self._moves = 0
        judged: list[LedgerEntry] = []
        for job in jobs:
            migration = job.migration
            if migration is not None and not job.deleting and contradiction(job) is None:
                self._under_way += 1
                self._moves += migration.created_at > now - HOUR and not migration.demanded
            for entry in job.history:
                if entry.finished_at > now + CLOCK_SKEW_SECONDS:
                    continue  # nobody has seen it: it would hold all others back until then
                if entry.started_at > now - HOUR and entry.outcome not in _UNTOUCHED and _chosen(entry):
                    self._moves += 1
                if entry.finished_at > now - BREAKER_MEMORY_SECONDS and entry.outcome in _JUDGED and _chosen(entry):
                    judged.append(entry)
        self._breaker = _breaker(judged, policy, now)

    @property
    def breaker_open(self) -> bool:
        """Whether too many of the last moves had to be undone."""
        return self._breaker is not None

    def refusal(self, intent: Intent) -> Refusal | None:
        """Why no further move may begin now; None where it may.

        What the user demands by an edit is not asked about. A job that must leave because somebody has changed its
        pool waits for the number of moves at once alone.
        """
        policy = self._policy
        if self._under_way >= policy.max_concurrent_migrations:
            return Refusal(
                Reason.MIGRATION_LIMIT_REACHED,
                f"{self._under_way} jobs are being moved, as many as the policy's maxConcurrentMigrations allow",
            )
        if intent is Intent.LEAVE:
            return None
        if self._moves >= policy.max_moves_per_hour:
            return Refusal(
                Reason.MOVE_RATE_LIMIT_REACHED,
                f"{self._moves} moves began in the last hour, as many as the policy's maxMovesPerHour allow",
            )
        return self._breaker

    def admit(self, demanded: bool) -> None:
        """A move begins. demanded: by the user's own edit."""
        self._under_way += 1
        self._moves += not demanded


def job_refusal(job: JobState, intent: Intent, policy: PlacementPolicySpec, now: float) -> Refusal | None:
    """Why this job may not be moved yet; None where it may. It does not stay where the spec does not allow it."""
    if intent is Intent.LEAVE:
        return None
    adaptation = job.spec.adaptation
    if job.moves >= adaptation.max_moves:
        return Refusal(
            Reason.MOVE_LIMIT_REACHED,
            f"the job has been moved {job.moves} times, adaptation.maxMoves is {adaptation.max_moves}",
        )
    cooldown = adaptation.cooldown.total_seconds()
    if job.last_move_at is not None and now - job.last_move_at < cooldown:
        return Refusal(
            Reason.COOLING_DOWN,
            f"the last move ended {span(now - job.last_move_at)} ago, adaptation.cooldown is {span(cooldown)}",
        )
    shortest = policy.min_run_time.total_seconds()
    if job.ref is not None and job.ref.since is not None and now - job.ref.since < shortest:
        return Refusal(
            Reason.MINIMUM_RUN_TIME,
            f"the job has run here for {span(now - job.ref.since)}, the policy's minRunTime is {span(shortest)}",
        )
    return None


def _breaker(judged: list[LedgerEntry], policy: PlacementPolicySpec, now: float) -> Refusal | None:
    """Open where too many of the fleet's last moves were undone. judged: those of the last day."""
    breaker = policy.circuit_breaker
    last = sorted(judged, key=lambda entry: entry.finished_at)[-breaker.window :]
    undone = [entry for entry in last if entry.outcome is Outcome.ROLLED_BACK]
    if len(last) < min(BREAKER_FEWEST, breaker.window):
        return None
    if len(undone) <= float(breaker.max_rolled_back_share) * len(last):
        return None
    oldest = min(entry.finished_at for entry in undone)
    return Refusal(
        Reason.CIRCUIT_BREAKER_OPEN,
        f"{len(undone)} of the last {len(last)} moves had to be undone, more than the policy's "
        f"circuitBreaker.maxRolledBackShare {share(float(breaker.max_rolled_back_share))}; the oldest is forgotten "
        f"in {span(oldest + BREAKER_MEMORY_SECONDS - now)}",
    )


def _chosen(entry: LedgerEntry) -> bool:
    """Whether the operator chose the move; what the user edits is not the operator's to answer for, and a start is no
    move."""
    return entry.action not in (Action.UPDATE, Action.START)
