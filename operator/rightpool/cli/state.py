"""The state of a job in one word, for tables."""

from __future__ import annotations

from typing import Final

from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.status import ProfiledJobStatus
from rightpool.reporting.stored_job import StoredJob

UNSEEN: Final = "Unseen"
NOTICED_SECONDS: Final = 60.0  # an operator looks at a new job within a cycle of ten seconds
# Said of a job while a migration brings it somewhere: the phase says more.
_ON_ITS_WAY: Final = frozenset(
    {Reason.RUNNING, Reason.STARTING, Reason.STOPPING, Reason.SUSPENDED, Reason.WAITING_FOR_CAPACITY}
)


def state_of(stored: StoredJob, status: ProfiledJobStatus) -> str:
    """Completed, Failed, Deleting, Unmanaged, Invalid, Unseen, RollingBack, a phase of its migration, Suspending, or
    the reason of its condition Placed, such as Running, Starting, CrashLoop or WaitingForQuota.

    Unseen: no operator has written a status yet. Suspending: it has not stopped the job yet. status: that of the job,
    which takes long to read.
    """
    job = stored.job
    if job.state.finished is not None:
        return job.state.finished
    if job.deleting:
        return "Deleting"
    if not job.spec.managed:
        return "Unmanaged"
    if job.invalid is not None or job.unreadable is not None:
        return "Invalid"
    placed = find_condition(status.conditions, ConditionType.PLACED)
    if placed is None:
        return UNSEEN
    migration = job.state.migration
    if migration is not None and job.state.pause is None and placed.reason in _ON_ITS_WAY:
        return "RollingBack" if migration.rolling_back else migration.phase.value
    if job.spec.suspend and placed.reason not in (Reason.SUSPENDED, Reason.STOPPING):
        return "Suspending"
    return placed.reason


def job_document(stored: StoredJob, status: ProfiledJobStatus) -> dict[str, str]:
    """Which job it is, and its state, for programs."""
    key = stored.job.key
    return {"namespace": key.namespace, "name": key.name, "state": state_of(stored, status)}


def holds_chips(stored: StoredJob) -> bool:
    """Whether the job is charged for chips now: its pods run, or are between two attempts."""
    return stored.job.state.account.since is not None and stored.job.state.finished is None


def without_operator(stored: StoredJob, now: float) -> bool:
    """Whether no operator looks at the job: it is another controller's, or nobody has noticed it."""
    job = stored.job
    return not job.spec.managed or (stored.observed_generation is None and now - job.created_at > NOTICED_SECONDS)
