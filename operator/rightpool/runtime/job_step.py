"""One job in one planning cycle: what its next state is, and what is to be written for it. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from math import inf
from operator import attrgetter
from typing import Final

from rightpool.api.altered import altered
from rightpool.api.state import JobState
from rightpool.api.value_object import value_object
from rightpool.hardware.calibration import uncalibrated
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import AskWhyUnmade, CheckTemplate, CheckVariants, Command, commands
from rightpool.planning.moves.news import at_rest
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.placed import placed_until
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.recovery import recovering, recovery_seconds
from rightpool.reporting.status import StatusDraft, draft_status
from rightpool.reporting.stored_job import StoredJob
from rightpool.reporting.verdicts import made_verdicts, stored_verdicts, with_stored
from rightpool.reporting.write_policy import NUMBERS_SECONDS, WritePolicy

NUMBERS_PER_CYCLE: Final = 200
"""Statuses that are made in a cycle for their numbers alone."""

Decide = Callable[[Fleet], Plan]

_BESIDE_BOOKS: Final = attrgetter(
    *(field.name for field in fields(JobState) if field.name not in {"account", "revision"})
)

logger = logging.getLogger(__name__)


@value_object
class Step:
    """One job in one cycle."""

    stored: StoredJob
    """The job as it is stored."""

    before: Job
    """As persisted and observed."""

    after: Job
    """As it is to be persisted; the same object where nothing is."""

    draft: StatusDraft | None
    """What is to be written; None where nothing is."""

    commands: tuple[Command, ...]
    """Of `before`, for a job that is not written."""

    @property
    def advanced(self) -> bool:
        """Whether the state machine took a step."""
        return self.after is not self.before

    @property
    def retried(self) -> bool:
        """Whether a command is tried again when its time has come."""
        return any(isinstance(command, CheckTemplate | CheckVariants | AskWhyUnmade) for command in self.commands)


@dataclass(slots=True)
class _Unchanged:
    """A status that was not worth a write."""

    job: Job
    """What it was made of. Whatever of a job is news makes it another object."""
    assessment: Assessment | None
    """The newest one of the same verdict: the former would keep its whole evaluation in memory."""
    until: float
    """Unix seconds when it is made anew in any case."""
    prints: tuple[int, int]
    """Prints of the verdicts that the status says, by itself and while the windows of a new process fill."""
    due: float = inf
    """Unix seconds when its numbers are looked at, where nobody has; inf where that was done."""
    complied: bool = False
    """Whether the cluster complied with what the job asks for, and time alone changes nothing."""


@dataclass(slots=True)
class Stepper:
    """Keeps what one cycle must know of the last, by uid."""

    policy: WritePolicy = field(default_factory=WritePolicy)
    """When what a status says is worth a write."""
    _problems: dict[str, str] = field(default_factory=dict)
    _unchanged: dict[str, _Unchanged] = field(default_factory=dict)
    _numbers: int = NUMBERS_PER_CYCLE
    _leading_since: float = 0.0

    def begin(self, leading_since: float) -> None:
        """A new cycle. leading_since: Unix seconds since when this process leads."""
        self.policy.begin()
        self._numbers = NUMBERS_PER_CYCLE
        if leading_since != self._leading_since:
            self._leading_since = leading_since
            self._unchanged.clear()

    def rests(self, job: Job, assessment: Assessment | None, now: float) -> bool:
        """Whether a step would be what the last one was: nothing. Nearly all jobs of a fleet rest in any cycle. Where
        pools, policy or telemetry change, all jobs are assessed anew."""
        last = self._unchanged.get(job.uid)
        return (
            last is not None
            and last.complied
            and last.job is job
            and last.assessment is assessment
            and now < min(last.until, last.due)
        )

    def complies(self, step: Step) -> None:
        """The cluster complies with the commands of a step that writes nothing."""
        job, last = step.before, self._unchanged.get(step.before.uid)
        if last is not None and last.job is job:
            last.complied = at_rest(job) and job.observed.refusal is None and not step.retried

    def step(
        self,
        stored: StoredJob,
        job: Job,
        assessment: Assessment | None,
        fleet: Fleet,
        trying: Trying = NO_TRIAL,
    ) -> Step:
        """Advance the state machine, and draft the status where it is to be written. A state machine that fails stops
        this job and no other; that of a job that could not be looked at takes no step."""
        now = fleet.now
        problem = job.observed.error
        after = job
        try:
            if problem is None:
                after = advance(job, assessment, fleet.policy, now, decision_text, trying)
                self._problems.pop(job.uid, None)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if self._problems.get(job.uid) != problem:
                logger.exception("the state machine failed", extra={"job": str(job.key)})
            self._problems[job.uid] = problem
            self._unchanged.pop(job.uid, None)
        # Where this cycle's writes are used up, what the state machine does not change is looked at in the next one.
        if after is job and problem is None and self.policy.exhausted:
            return Step(stored, job, job, None, commands(job))
        if after is not job and _books_alone(job, after):
            # A price that is edited is one of ten thousand jobs, perhaps.
            if self.policy.exhausted:
                return Step(stored, job, job, None, commands(job))
            self.policy.informed()
        pool = None if after.state.revision is None else fleet.pools.get(after.state.revision.placement.pool)
        price = None if pool is None else pool.price
        estimated = pool is not None and pool.accelerator.doubts
        remedy = uncalibrated(pool.name, pool.accelerator) if pool is not None and estimated else None
        recovers = recovering(job, now - self._leading_since)
        context = Context(assessment, price, fleet.telemetry, now, problem, recovers, remedy)
        if after is job and problem is None and self._nothing_new(stored, job, context):
            return Step(stored, job, job, None, commands(job))
        draft = draft_status(stored, after, context)
        wait = self.policy.wait(job.uid, draft.stored, draft.body, draft.shown, now)
        if wait == 0.0 or after is not job:
            self._unchanged.pop(job.uid, None)
            return Step(stored, job, after, draft, ())
        if problem is None:
            shown = stored_verdicts(draft.stored).print
            prints = shown, made_verdicts(job, context).print if recovers else shown
            until = inf if wait is None else now + wait
            self._unchanged[job.uid] = _Unchanged(job, assessment, self._until(job, context, until), prints)
            return Step(stored, job, job, None, commands(job))
        return Step(stored, job, job, None, ())

    def _nothing_new(self, stored: StoredJob, job: Job, context: Context) -> bool:
        """Whether a status would not be written now, by what it would say of the job. A fleet of which all jobs are
        measured anew has new numbers in all statuses at once: what exceeds a cycle's share of them is looked at
        within the time after which numbers are written."""
        last, now = self._unchanged.get(job.uid), context.now
        if job.unreadable is not None or (last is not None and now >= last.until):
            return False
        if last is None:  # after a write, or in a process that has just begun
            made, before = made_verdicts(job, context), stored_verdicts(stored.status_body)
            if with_stored(made, before, stored, job, context).print != before.print:
                return False
            last = _Unchanged(job, context.assessment, inf, (before.print, made.print), due=now)
        elif (last.job is not job or last.assessment is not context.assessment) and (
            made_verdicts(job, context).print not in last.prints
        ):
            return False
        if last.job is not job or now >= last.due:
            wait = self.policy.numbers_wait(job.uid, now)
            if wait == 0.0 and self._numbers > 0:
                self._numbers -= 1
                return False
            last.due = min(last.due if last.due > now else inf, now + (wait or NUMBERS_SECONDS * job.phase))
        last.job, last.assessment, last.complied = job, context.assessment, False
        last.until = self._until(job, context, last.until)
        self._unchanged[job.uid] = last
        return True

    def _until(self, job: Job, context: Context, until: float) -> float:
        """When its status is made anew in any case, at most `until`."""
        until = min(until, placed_until(job, context.now))
        return min(until, self._leading_since + recovery_seconds(job)) if context.recovering else until

    def forget(self, gone: set[str]) -> None:
        """Jobs that do not exist any more."""
        self.policy.forget(gone)
        for uid in gone:
            self._problems.pop(uid, None)
            self._unchanged.pop(uid, None)


def _books_alone(job: Job, after: Job) -> bool:
    """Whether nothing but the account has changed, which can be booked a cycle later."""
    one, two = job.state, after.state
    if one.account is two.account or one.revision is None or two.revision is None:
        return False
    return (
        _BESIDE_BOOKS(one) == _BESIDE_BOOKS(two)
        and altered(two.revision, cost_per_hour=one.revision.cost_per_hour) == one.revision
    )


def ended_and_reported(stored: StoredJob) -> bool:
    """Whether the job has ended and its status says so: nothing is written about it again, unless its spec changes."""
    job = stored.job
    return (
        job.state.finished is not None and stored.observed_generation == job.generation and job.state.migration is None
    )


def never_ran(stored: StoredJob) -> bool:
    """Whether the job is being deleted and has never had a place, so that there is nothing to say of its end."""
    return stored.job.deleting and stored.job.state.revision is None
