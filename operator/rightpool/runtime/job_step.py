"""One job in one planning cycle: what its next state is, and what is to be written for it. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Final

from rightpool.api.altered import altered
from rightpool.api.state import JobState
from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Price
from rightpool.hardware.calibration import uncalibrated
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, Observed
from rightpool.planning.moves.commands import AskWhyUnmade, CheckTemplate, CheckVariants, Command, commands
from rightpool.planning.moves.transitions import advance, at_rest
from rightpool.planning.offers.assessment import Assessment
from rightpool.profiles.steadiness import worth_keeping
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.placed import placed_until
from rightpool.reporting.migration_texts import MigrationTexts
from rightpool.reporting.recovery import recovering, recovery_seconds
from rightpool.reporting.shown import Verdicts, shown_values, verdicts_of
from rightpool.reporting.status import StatusDraft, draft_status
from rightpool.reporting.stored_job import StoredJob
from rightpool.reporting.write_policy import WritePolicy

# A status that would say the same is made anew this often, seconds: what was spent grows with the clock.
REMAKE_SECONDS: Final = 1800.0
# The same where it shows how much of the job is done.
PROGRESS_SECONDS: Final = 400.0

_WORDS: Final = MigrationTexts()

Decide = Callable[[Fleet], Plan]

# No status says when the last save was, or how windows differ, and samples are counted all the time.
_UNSHOWN: Final = frozenset({"checkpoint_at", "last_rate", "track", "variation"})
_SHOWN: Final = attrgetter(*(name for name in Observed._fields if name not in _UNSHOWN))

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


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """What a status is made from, besides the assessment. Most parts are the same objects from cycle to cycle, so that
    comparing is cheap: a status costs 0.2 ms, and without this a cycle over 10,000 jobs 2 s more."""

    stored: StoredJob
    job: Job
    price: Price | None
    telemetry: bool
    recovering: bool
    uncalibrated: str | None

    def __eq__(self, other: object) -> bool:
        """Equal where a status shows the same of both."""
        if not isinstance(other, _Inputs):
            return NotImplemented
        return (
            self.stored is other.stored
            and self.price == other.price
            and self.telemetry is other.telemetry
            and self.recovering is other.recovering
            and self.uncalibrated == other.uncalibrated
            and (self.job is other.job or _SHOWN(self.job.observed) == _SHOWN(other.job.observed))
        )

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class _Unchanged:
    """A status that was not worth a write."""

    inputs: _Inputs
    """The newest ones that would not have changed it."""
    assessment: Assessment | None
    """The same."""
    verdicts: Verdicts | None
    until: float
    """Unix seconds when it is made anew in any case."""
    surroundings: int
    """Which surroundings the newest inputs were looked at in."""
    complied: bool = False
    """Whether the cluster complied with what the job of these inputs asks for, and neither time nor one window more
    changes anything."""


@dataclass(slots=True)
class Stepper:
    """Keeps what one cycle must know of the last, by uid."""

    policy: WritePolicy = field(default_factory=WritePolicy)
    """When what a status says is worth a write."""
    _problems: dict[str, str] = field(default_factory=dict)
    _unchanged: dict[str, _Unchanged] = field(default_factory=dict)
    _leading_since: float = 0.0
    _surroundings: tuple[object, ...] = ()
    _changes: int = 0  # of the surroundings

    def begin(self, fleet: Fleet, leading_since: float) -> None:
        """A new cycle. leading_since: Unix seconds since when this process leads."""
        self.policy.begin()
        pools = {name: (pool.price, pool.accelerator.doubts) for name, pool in fleet.pools.items()}
        surroundings = (fleet.policy, fleet.telemetry, leading_since, pools)
        if surroundings != self._surroundings:
            self._surroundings, self._leading_since = surroundings, leading_since
            self._changes += 1

    def rests(self, stored: StoredJob, job: Job, assessment: Assessment | None, now: float) -> bool:
        """Whether a step would be what the last one was: nothing. Nearly all jobs of a fleet rest in any cycle."""
        last = self._unchanged.get(job.uid)
        if (
            last is None
            or not last.complied
            or last.assessment is not assessment
            or last.surroundings != self._changes
            or now >= last.until
        ):
            return False
        before = last.inputs.job
        if job is before:
            return True
        # One more window by itself is no news.
        if (
            stored is not last.inputs.stored
            or _SHOWN(job.observed) != _SHOWN(before.observed)
            or worth_keeping(job.state.variation, job.observed.variation)
        ):
            return False
        last.inputs = replace(last.inputs, job=job)
        return True

    def complies(self, step: Step) -> None:
        """The cluster complies with the commands of a step that writes nothing."""
        job, last = step.before, self._unchanged.get(step.before.uid)
        if last is not None and last.inputs.job is job:
            last.complied = at_rest(job) and job.observed.refusal is None and not step.retried

    def step(
        self,
        stored: StoredJob,
        job: Job,
        assessment: Assessment | None,
        fleet: Fleet,
    ) -> Step:
        """Advance the state machine, and draft the status where it is to be written. A state machine that fails stops
        this job and no other; that of a job that could not be looked at takes no step."""
        now = fleet.now
        problem = job.observed.error
        after = job
        try:
            if problem is None:
                after = advance(job, assessment, fleet.policy, now, _WORDS)
                self._problems.pop(job.uid, None)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if self._problems.get(job.uid) != problem:
                logger.exception("the state machine failed", extra={"job": str(job.key)})
            self._problems[job.uid] = problem
            self._unchanged.pop(job.uid, None)
        pool = None if after.state.revision is None else fleet.pools.get(after.state.revision.placement.pool)
        price = None if pool is None else pool.price
        estimated = pool is not None and pool.accelerator.doubts
        remedy = uncalibrated(pool.name, pool.accelerator) if pool is not None and estimated else None
        inputs = _Inputs(stored, job, price, fleet.telemetry, recovering(job, now - self._leading_since), remedy)
        # Where this cycle's writes are used up, what the state machine does not change is looked at in the next one.
        if (
            after is job
            and problem is None
            and (self._nothing_new(job, inputs, assessment, now) or self.policy.exhausted)
        ):
            return Step(stored, job, job, None, commands(job))
        if after is not job and _books_alone(job, after):
            # A price that is edited is one of ten thousand jobs, perhaps.
            if self.policy.exhausted:
                return Step(stored, job, job, None, commands(job))
            self.policy.informed()
        context = Context(assessment, price, fleet.telemetry, now, problem, inputs.recovering, remedy)
        draft = draft_status(stored, after, context)
        wait = self.policy.wait(job.uid, draft.stored, draft.body, draft.shown, now)
        if wait == 0.0 or after is not job:
            self._unchanged.pop(job.uid, None)
            return Step(stored, job, after, draft, ())
        if problem is None:
            # Not all jobs in the same cycle: how long depends on the job.
            longest = REMAKE_SECONDS if job.spec.total_samples is None else PROGRESS_SECONDS
            longest *= 0.5 + 0.5 * job.phase
            until = min(now + (longest if wait is None else min(wait, longest)), placed_until(job, now))
            if inputs.recovering:
                until = min(until, self._leading_since + recovery_seconds(job))
            verdicts = None if assessment is None else verdicts_of(job, assessment, now)
            self._unchanged[job.uid] = _Unchanged(inputs, assessment, verdicts, until, self._changes)
            return Step(stored, job, job, None, commands(job))
        return Step(stored, job, job, None, ())

    def _nothing_new(self, job: Job, inputs: _Inputs, assessment: Assessment | None, now: float) -> bool:
        """Whether a status of inputs that show the same was not worth a write, lately."""
        last = self._unchanged.get(job.uid)
        if last is None or now >= last.until or last.inputs != inputs:
            return False
        last.inputs, last.surroundings, last.complied = inputs, self._changes, False
        if assessment is last.assessment:
            return True
        if assessment is None or last.verdicts is None:
            same = assessment == last.assessment
        else:
            same = last.verdicts == verdicts_of(job, assessment, now)
            same = same and not self.policy.moved(job.uid, shown_values(assessment))
        if same:
            last.assessment = assessment  # the former one would keep its whole evaluation in memory
        return same

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
