"""After a restart: what the stored status says of measurements is kept until the windows are full again.

Windows are in memory alone. Without this, ten thousand statuses would say WarmingUp, and then what they stored before:
two writes and several Events each, with no news in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rightpool.api.conditions import Condition, Reason, find_condition
from rightpool.api.migration import Phase
from rightpool.api.status import ProfiledJobStatus
from rightpool.planning.jobs.job import Job
from rightpool.reporting.stored_job import StoredJob

# How long a process is given to measure a job again: its window, what came late, and the start itself.
_WINDOWS: Final = 1.5
_SECONDS: Final = 60.0
_NOT_KNOWN_YET: Final = frozenset(
    {Reason.WARMING_UP, Reason.NO_TELEMETRY, Reason.PARTIAL_TELEMETRY, Reason.PROFILE_NEEDED}
)


def recovering(job: Job, leading_for: float) -> bool:
    """Whether the job may not have been measured again yet. leading_for: seconds that this process has led for."""
    if job.observed.profile is not None and job.observed.profile.complete:
        return False
    return leading_for < recovery_seconds(job)


def recovery_seconds(job: Job) -> float:
    """How long a process that has begun to lead is given to measure the job."""
    return _WINDOWS * job.spec.profiling.window.total_seconds() + _SECONDS


def still_applies(stored: StoredJob, job: Job, *, measured: bool) -> bool:
    """Whether what the stored status says of measurements is about the job as it is now. measured: whether it says
    that there are some."""
    ref, placed = job.state.revision, stored.job.state.revision
    return (
        measured
        and ref is not None
        and placed is not None
        and placed.revision == ref.revision
        and stored.observed_generation == job.generation
        and job.state.finished is None
        and (job.state.migration is None or job.state.migration.phase is Phase.PLANNED)
        and job.revision(ref.revision).all_running(ref.placement.replicas)
    )


def carried_over(stored: ProfiledJobStatus, applying: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions that apply, with the stored ones in the place of those that only say what is missing."""
    for condition in applying:
        before = find_condition(stored.conditions, condition.type)
        yield before if before is not None and not_known_yet(condition.reason, before.reason) else condition


def not_known_yet(reason: str, before: str) -> bool:
    """Whether the reason of a condition says only what is missing, beside that of before the restart."""
    return reason in _NOT_KNOWN_YET or (reason == Reason.HEALTHY and before == Reason.STRAGGLER)
