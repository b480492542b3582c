"""One word for how a job is doing."""

from __future__ import annotations

from rightpool.planning.snapshot import JobState


def state_of(job: JobState) -> str:
    """Completed, Failed, Deleting, Unmanaged, Invalid, a phase of its migration, RollingBack, Suspended, Pending,
    Starting or Running.

    Pending: it has no place yet. Starting: not all of its pods ran yet.
    """
    if job.finished is not None:
        return job.finished
    if job.deleting:
        return "Deleting"
    if not job.spec.ours:
        return "Unmanaged"
    if job.invalid is not None or job.unreadable is not None:
        return "Invalid"
    if job.migration is not None:
        return "RollingBack" if job.migration.rolling_back else job.migration.phase.value
    if job.spec.suspend:
        return "Suspended"
    if job.ref is None:
        return "Pending"
    return "Starting" if job.ref.since is None else "Running"
