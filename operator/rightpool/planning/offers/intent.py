"""Intents: what an action would be for."""

from enum import StrEnum

from rightpool.planning.jobs.job import Job


class Intent(StrEnum):
    """What an action would be for."""

    START = "Start"  # the job has no place yet
    UPDATE = "Update"  # the user changed the workload
    LEAVE = "Leave"  # the user no longer allows where it is
    REPAIR = "Repair"  # a declared target is missed where it is
    SAVE = "Save"  # it is better elsewhere
    NONE = "None"  # nothing may be begun


def demanded(job: Job, intent: Intent) -> bool:
    """Whether the user demands it by an edit. To leave a place because somebody changed its pool is not demanded."""
    return intent is Intent.UPDATE or (intent is Intent.LEAVE and job.edited)
