"""How far a job is, what is left of it, and what it costs to stop and start it."""

import math
from typing import Final, NamedTuple

from rightpool.api.workload import JobWorkload
from rightpool.planning.jobs.job import Job, throttled_now
from rightpool.planning.work.registry import work_of
from rightpool.profiles.silence import doubt_of_pauses
from rightpool.profiles.steadiness import doubt_of_rest, pace, window_doubt

SHORTEST_HORIZON_SECONDS: Final = 3600.0
# Deadlines, budgets and the work that is left run with the clock; an evaluation that depends on them is this old at
# most.
CLOCK_SECONDS: Final = 60.0
# How old any evaluation is at most, give or take a half: what moves of other jobs have shown of the chips is in no job.
LONGEST_SECONDS: Final = 300.0


class Outlook(NamedTuple):
    """Seconds and dollars, as of one moment; NaN where not declared. A tuple, because each is a row of the columns."""

    work_left: float
    """Units of work."""
    restart: float
    """Seconds of work that a move costs."""
    horizon: float
    """Seconds over which a move must pay back."""
    time_left: float
    """To the deadline."""
    budget_left: float
    """Dollars."""


def outlook(job: Job, rate: float, now: float) -> Outlook:
    """What the rest of the job looks like. rate: units of work a second now.

    The horizon of a job that does not say how much work it has is its age so far, at least an hour: of jobs whose
    durations spread over many orders of magnitude, one that has run for t has about t ahead of it (Lindy). Age counts
    in powers of two, so that a decision does not hang on the minute.
    """
    work, targets = work_of(job.spec), job.spec.targets
    deadline, budget = targets.deadline, targets.budget
    extent = work.extent(job, now)
    left = math.nan if extent is None else max(extent.left, 1.0)
    return Outlook(
        work_left=left,
        restart=work.restart_seconds(job),
        horizon=SHORTEST_HORIZON_SECONDS * 2.0 ** age_class(job, now) if extent is None else left / rate,
        time_left=math.nan if deadline is None else deadline - now,
        budget_left=math.nan if budget is None else float(budget) - job.state.account.spent_by(now),
    )


def pace_of(job: Job) -> tuple[float, float]:
    """Throughput in the long run, and the standard deviation of the log of what the rest of the job will do.

    By the newest windows of the Revision, where such are known: both how surely their mean is known and by how much an
    hour of the job differs from another one count. By the newest readings alone where a fault has begun to throttle the
    job's chips since then, or was repaired. NaN where nothing was measured.
    """
    profile, revision = job.observed.profile, job.state.revision
    reading = None if profile is None else profile.throughput
    if profile is None or reading is None or revision is None:
        return math.nan, math.nan
    variation = job.observed.variation
    seen = pace(variation, revision.revision, profile.unit)
    if variation is None or seen is None:
        return reading.value, window_doubt(reading)
    if variation.throttled != throttled_now(job):
        return reading.value, doubt_of_rest(variation, 1)
    return seen.rate, math.hypot(doubt_of_rest(variation, seen.windows), doubt_of_pauses(variation.recent))


def ends_at(job: Job, now: float) -> float | None:
    """Unix seconds when the job ends at the latest, by what it declares, or at its present pace; for one that waits, as
    if it started now. None where neither tells."""
    workload, revision = job.spec.workload.chosen, job.state.revision
    ends = []
    if isinstance(workload, JobWorkload) and workload.active_deadline_seconds is not None:
        child = job.child
        began = now if revision is None else (child and child.started_at) or revision.created_at
        ends.append(began + workload.active_deadline_seconds)
    rate, extent = math.nan if revision is None else pace_of(job)[0], work_of(job.spec).extent(job, now)
    if extent is not None and rate > 0.0:
        ends.append(now + extent.left / rate)
    return min(ends, default=None)


def age_class(job: Job, now: float) -> int:
    """Whole powers of two of the job's age in hours; 0 below two hours."""
    hours = int((now - job.created_at) / SHORTEST_HORIZON_SECONDS)
    return max(hours.bit_length() - 1, 0)


def interruption_seconds(job: Job) -> float:
    """Seconds of work that an interruption of spot capacity costs this job: what the last one did, else a restart."""
    recovery = job.state.recovery
    return work_of(job.spec).restart_seconds(job) if recovery is None else recovery.seconds


def patience(job: Job, seconds: float) -> float:
    """How long to wait for the first step after a start: so many seconds, or twice what the job is known to take."""
    return seconds if job.state.recovery is None else max(seconds, 2.0 * job.state.recovery.seconds)


def good_until(job: Job, now: float, start_deadline: float) -> float:
    """Unix seconds until which an evaluation of the job is good, unless the job changes."""
    targets = job.spec.targets
    # The next power of two of the age.
    ends = [job.created_at + SHORTEST_HORIZON_SECONDS * 2.0 ** (age_class(job, now) + 1)]
    ends.append(now + LONGEST_SECONDS * (0.5 + job.phase))
    if targets.deadline is not None or targets.budget is not None or work_of(job.spec).extent(job, now) is not None:
        ends.append(now + CLOCK_SECONDS)
    ends += [entry.until for entry in job.state.avoid if entry.until is not None and entry.until > now]
    revision = job.state.revision
    if revision is not None and job.obstacle is not None:
        # From then on a job that does not start is tried elsewhere.
        child = job.revision(revision.revision)
        lost = child.unschedulable_since if revision.since is not None else None
        began = lost or (child.started_at if child.exists else revision.created_at)
        if began is not None and began + start_deadline >= now:
            ends.append(began + start_deadline)
    return min(ends)
