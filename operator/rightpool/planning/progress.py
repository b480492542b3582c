"""How far a job is, what is left of it, and what it costs to stop and start it."""

from dataclasses import dataclass
from typing import Final

from rightpool.planning.snapshot import JobState
from rightpool.prediction.estimate import Estimate
from rightpool.profiles.sample import Field

# From the old pods' end to the first step on the new ones, where this job has not shown how long it takes.
TYPICAL_RESTART_SECONDS: Final = 60.0
SHORTEST_HORIZON_SECONDS: Final = 3600.0
# Estimates of the time left are met half of the time; a deadline needs more.
DEADLINE_MARGIN: Final = 1.05


@dataclass(frozen=True, slots=True)
class Outlook:
    """Seconds and dollars, as of one moment.

    samples_left: None where spec.progress does not say how much there is. restart: seconds without progress that a
    move costs. horizon: seconds over which a move must pay back. time_left: to the deadline; budget_left: dollars;
    None where not declared. spent: dollars so far.
    """

    samples_left: float | None
    restart: float
    horizon: float
    time_left: float | None
    budget_left: float | None
    spent: float

    def seconds_left(self, samples_per_second: float) -> float | None:
        """Remaining run time at this rate; None where the amount of work is not declared."""
        return None if self.samples_left is None else self.samples_left / samples_per_second

    def meets_deadline(self, samples_per_second: float, restart: float) -> bool:
        """Whether the work is done in time at this rate after `restart` seconds; True without a deadline."""
        left = self.seconds_left(samples_per_second)
        if self.time_left is None or left is None:
            return True
        return left * DEADLINE_MARGIN + restart <= self.time_left


def outlook(job: JobState, rate: Estimate | None, now: float) -> Outlook:
    """What the rest of the job looks like. rate: samples/s now, None where not measured.

    The horizon of a job that does not say how much work it has is its age so far, at least an hour: of jobs whose
    durations spread over many orders of magnitude, one that has run for t has about t ahead of it (Lindy). Age counts
    in powers of two, so that a decision does not hang on the minute.
    """
    spec = job.spec
    left: float | None = None
    if spec.progress is not None:
        left = max(spec.progress.total_samples - samples_done(job, rate, now), 1.0)
    horizon = max(SHORTEST_HORIZON_SECONDS * 2.0 ** age_class(job, now), SHORTEST_HORIZON_SECONDS)
    if left is not None and rate is not None:
        horizon = left / rate.median
    deadline = spec.targets.deadline
    spent = job.account.settled(now).spent
    budget = spec.targets.budget
    return Outlook(
        samples_left=left,
        restart=restart_seconds(job),
        horizon=horizon,
        time_left=None if deadline is None else deadline.timestamp() - now,
        budget_left=None if budget is None else float(budget) - spent,
        spent=spent,
    )


def age_class(job: JobState, now: float) -> int:
    """Whole powers of two of the job's age in hours; 0 below two hours."""
    hours = int((now - job.created_at) / SHORTEST_HORIZON_SECONDS)
    return max(hours.bit_length() - 1, 0)


def restart_seconds(job: JobState) -> float:
    """Seconds without progress that moving this job costs: what its last move took, else a typical start and a save."""
    for entry in reversed(job.history):
        if entry.lost_seconds > 0.0:
            return entry.lost_seconds
    save = job.profile.value(Field.CHECKPOINT_SECONDS) if job.profile is not None else None
    return TYPICAL_RESTART_SECONDS + (save or 0.0)


def samples_done(job: JobState, rate: Estimate | None, now: float) -> float:
    """Samples consumed so far, as far as the ledger tells: each stretch between moves at the rate measured in it.

    What is not known counts as not done, which errs on the side of meeting a deadline.
    """
    done, since = 0.0, job.created_at
    for entry in job.history:
        if entry.baseline_samples_per_second is not None:
            done += entry.baseline_samples_per_second * max(entry.started_at - since, 0.0)
        since = entry.finished_at
    if rate is not None and job.ref is not None and job.ref.since is not None:
        done += rate.median * max(now - max(job.ref.since, since if job.history else 0.0), 0.0)
    return done
