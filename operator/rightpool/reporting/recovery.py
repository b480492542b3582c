"""After a restart: what the stored status says of measurements is kept until the windows are full again.

Windows are in memory alone. Without this, ten thousand statuses would say WarmingUp, and then what they stored before:
two writes and several Events each, with no news in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.migration import Phase
from rightpool.api.status import ProfiledJobStatus
from rightpool.planning.jobs.job import Job

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


def still_applies(stored: ProfiledJobStatus, job: Job) -> bool:
    """Whether the stored status has measurements, and is about the job as it is now."""
    ref, placed = job.state.revision, stored.state.revision
    measured = find_condition(stored.conditions, ConditionType.PROFILED)
    return (
        ref is not None
        and placed is not None
        and placed.revision == ref.revision
        and stored.observed_generation == job.generation
        and job.state.finished is None
        and (job.state.migration is None or job.state.migration.phase is Phase.PLANNED)
        and job.revision(ref.revision).all_running(ref.placement.replicas)
        and measured is not None
        and measured.status == "True"
    )


def carried_over(stored: ProfiledJobStatus, applying: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions that apply, with the stored ones in the place of those that only say what is missing."""
    for condition in applying:
        before = find_condition(stored.conditions, condition.type)
        healed = condition.reason == Reason.HEALTHY and before is not None and before.reason == Reason.STRAGGLER
        yield before if before is not None and (condition.reason in _NOT_KNOWN_YET or healed) else condition
