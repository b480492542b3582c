"""Pods that wear a job's labels and are none of its Jobs': somebody made them, or let them live on without their Job.

They may be writing to the job's checkpoint, so nothing is started beside them; and nothing is ended for a start that
they would hold up.
"""

from __future__ import annotations

from rightpool.contract import LABEL_REVISION
from rightpool.planning.snapshot import JobState


def stranger(job: JobState) -> str | None:
    """Which pod that is, with the remedy; None where there is none."""
    worn = min(((state.revision, state.stranger) for state in job.revisions.values() if state.stranger), default=None)
    if worn is None:
        return None
    return (
        f"pod {worn[1]} wears the labels of r{worn[0]} and is not its Job's, and nothing is started beside it: delete "
        f"the pod, or take the label {LABEL_REVISION} off it"
    )
