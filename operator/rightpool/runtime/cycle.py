"""One job in one planning cycle: what its next state is, and what is to be written for it. No I/O."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from zlib import crc32

from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.pool import Pool
from rightpool.planning.assess import Assessment
from rightpool.planning.commands import Command
from rightpool.planning.plan import alike
from rightpool.planning.revision import RevisionState
from rightpool.planning.snapshot import JobKey, JobState, Snapshot
from rightpool.planning.transitions import advance, commands
from rightpool.profiles.diagnosis import Bottleneck
from rightpool.profiles.profile import Profile
from rightpool.runtime.conditions import Circumstances
from rightpool.runtime.difference import Difference
from rightpool.runtime.executor import Refusal
from rightpool.runtime.jobs import StoredJob
from rightpool.runtime.lull import Lull
from rightpool.runtime.recovery import recovering
from rightpool.runtime.status import COSMETIC_SECONDS, StatusDraft, draft_status

# Time alone changes little: what was spent, since when something is waited for.
QUIET_SECONDS = 300.0
# Spent and saved grow with the clock, of every job, and what they are now can be computed. Over the whole fleet they
# are worth one write in so many seconds, and a fleet that had none for a while has so many to make.
MONEY_SECONDS = 60.0
MONEY_WRITES = 30.0
# Statuses that only tell something, in one cycle. More than the API server takes until the next one would be in memory
# all that time, ten thousand of them at a start, and what happens to a job meanwhile would wait behind them.
DRAFTS = 500

Decide = Callable[[Snapshot], Mapping[JobKey, Assessment]]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """One job in one cycle. before: as persisted and observed; after: as it is to be persisted, the same object where
    nothing is. draft: None where nothing is to be said. commands: of `before`, for a job that is not written."""

    stored: StoredJob
    before: JobState
    after: JobState
    draft: StatusDraft | None
    commands: tuple[Command, ...]

    @property
    def advanced(self) -> bool:
        """Whether the state machine took a step."""
        return self.after is not self.before


@dataclass(frozen=True, slots=True)
class _Quiet:
    """What a draft was made from that had nothing new to say. The same again will have nothing new to say either."""

    stored: StoredJob
    revisions: Mapping[int, RevisionState]
    assessment: Assessment | None
    profile: Profile | None
    bottleneck: Bottleneck | None
    pool: Pool | None
    absent: str | None
    refusal: Refusal | None
    telemetry: bool
    recovering: bool
    until: float

    def still(self, other: _Quiet, now: float) -> bool:
        """Identity where the parts are kept from cycle to cycle, likeness for the profile, which is made anew."""
        return (
            self.stored is other.stored
            and self.revisions is other.revisions
            and self.assessment is other.assessment
            and self.bottleneck is other.bottleneck
            and self.refusal is other.refusal
            and self.telemetry == other.telemetry
            and self.recovering == other.recovering
            and now < self.until
            and (self.pool is other.pool or self.pool == other.pool)
            and self.absent == other.absent
            and (self.profile is other.profile or alike(self.profile, other.profile))
        )


@dataclass(slots=True)
class Stepper:
    """Keeps what one cycle must know of the last: when each job was written, and which had nothing to say. By uid."""

    written_at: dict[str, float] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    quiet: dict[str, _Quiet] = field(default_factory=dict)
    _lull: Lull = field(default_factory=Lull)
    _drafts: int = DRAFTS
    _money: float = MONEY_WRITES
    _money_at: float = 0.0

    def begin(self, now: float) -> None:
        """A new cycle."""
        self._drafts = DRAFTS
        self._lull.forget(now)

    def step(
        self,
        stored: StoredJob,
        job: JobState,
        assessment: Assessment | None,
        pools: Mapping[str, Pool],
        policy: PlacementPolicySpec,
        refusal: Refusal | None,
        *,
        telemetry: bool,
        leading_for: float,
        now: float,
    ) -> Step:
        """Go on, and say so. A state machine that fails stops this job and no other.

        leading_for: seconds that this process has led for.
        """
        problem: str | None = None
        after = job
        try:
            after = advance(job, assessment, policy, now)
            self.problems.pop(job.uid, None)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if self.problems.get(job.uid) != problem:
                logger.exception("the state machine failed", extra={"job": str(job.key)})
            self.problems[job.uid] = problem
        pool = None if after.ref is None else pools.get(after.ref.placement.pool)
        bottleneck = None if job.diagnosis is None else job.diagnosis.bottleneck
        # Not all jobs in the same cycle: how long depends on the job.
        until = now + QUIET_SECONDS * (0.5 + crc32(job.uid.encode()) / 2**33)
        again = recovering(job, leading_for)
        made_from = _Quiet(
            stored,
            job.revisions,
            assessment,
            job.profile,
            bottleneck,
            pool,
            job.absent,
            refusal,
            telemetry,
            again,
            until,
        )
        last = self.quiet.get(job.uid)
        if after is job and problem is None and last is not None and last.still(made_from, now):
            return Step(stored, job, job, None, commands(job))
        if after is job and problem is None and self._drafts <= 0:
            return Step(stored, job, job, None, commands(job))
        around = Circumstances(assessment, pool, refusal, telemetry, now, problem, again)
        draft = draft_status(stored, after, around)
        worth = after is not job or self._worth_writing(stored, job, draft, now)
        if not worth and problem is None and draft.difference <= Difference.MONEY:
            self.quiet[job.uid] = made_from
        else:
            self.quiet.pop(job.uid, None)
        if not worth:
            return Step(stored, job, job, None, () if problem else commands(job))
        self._drafts -= after is job
        return Step(stored, job, after, draft, ())

    def _worth_writing(self, stored: StoredJob, job: JobState, draft: StatusDraft, now: float) -> bool:
        if draft.difference is Difference.NONE:
            return False
        if draft.difference is Difference.STATE:
            before = stored.status.conditions
            if not draft.only_verdicts or not self._lull.holds(job.uid, before, draft.conditions, now):
                self._lull.told(job.uid, before, draft.conditions, now)
                return True
            return False
        if now - self.written_at.get(job.uid, 0.0) < COSMETIC_SECONDS:
            return False
        return draft.difference is Difference.COSMETIC or self._money_is_due(now)

    def _money_is_due(self, now: float) -> bool:
        self._money = min(MONEY_WRITES, self._money + (now - self._money_at) / MONEY_SECONDS)
        self._money_at = now
        if self._money < 1.0:
            return False
        self._money -= 1.0
        return True

    def forget(self, gone: set[str]) -> None:
        """Jobs that do not exist any more."""
        for uid in gone:
            self.written_at.pop(uid, None)
            self.problems.pop(uid, None)
            self.quiet.pop(uid, None)


def at_rest(stored: StoredJob) -> bool:
    """Nothing will ever be said about this job again, unless its spec changes: it has ended, and its status says so."""
    job = stored.state
    return job.finished is not None and stored.observed_generation == job.generation and job.migration is None


def never_ran(stored: StoredJob) -> bool:
    """Whether the job is being deleted and has never had a place, so that there is nothing to say of its end."""
    return stored.state.deleting and stored.state.ref is None
