"""After a restart: what the status says of measurements stands until the windows are full again.

Windows are in memory alone. Without this, ten thousand jobs would be told to warm up, and then what they were told
before: two statuses and several Events each, and nothing of it new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.status import ProfiledJobStatus
from rightpool.planning.migration import Phase
from rightpool.planning.snapshot import JobState

# How long a process is given to measure a job again: its window, what came late, and the start itself.
_WINDOWS: Final = 1.5
_SECONDS: Final = 60.0
_NOT_KNOWN_YET: Final = frozenset(
    {Reason.WARMING_UP, Reason.NO_TELEMETRY, Reason.PARTIAL_TELEMETRY, Reason.PROFILE_NEEDED}
)


def recovering(job: JobState, leading_for: float) -> bool:
    """Whether the job may not have been measured again yet. leading_for: seconds that this process has led for."""
    if job.profile is not None and job.profile.complete:
        return False
    return leading_for < _WINDOWS * job.spec.profiling.window.total_seconds() + _SECONDS


def stands(said: ProfiledJobStatus, job: JobState) -> bool:
    """Whether the status tells of measurements, and of the job as it is now."""
    ref, placed = job.ref, said.placement
    measured = find_condition(said.conditions, ConditionType.PROFILED)
    return (
        ref is not None
        and placed is not None
        and placed.revision == ref.revision
        and said.observed_generation == job.generation
        and job.finished is None
        and (job.migration is None or job.migration.phase is Phase.PLANNED)
        and job.revision(ref.revision).running >= ref.placement.replicas
        and measured is not None
        and measured.status == "True"
    )


def carried_over(said: ProfiledJobStatus, applying: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions that apply, and what was said before in the place of those that only tell what is missing."""
    for condition in applying:
        before = find_condition(said.conditions, condition.type)
        healed = condition.reason == Reason.HEALTHY and before is not None and before.reason == Reason.STRAGGLER
        yield before if before is not None and (condition.reason in _NOT_KNOWN_YET or healed) else condition
