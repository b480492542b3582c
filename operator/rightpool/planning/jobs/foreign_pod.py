"""Pods that have a job's labels and are none of its children's: somebody made them, or let them live on by themselves.

They may be writing to the job's checkpoint, so nothing is started beside them; and nothing is ended for a start that
they would hold up.
"""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.contract import LABEL_REVISION
from rightpool.planning.jobs.job import Job


@dataclass(frozen=True, slots=True, order=True)
class ForeignPod:
    """A pod that is not of the child whose labels it has."""

    revision: int
    """In its labels."""

    name: str
    """Of the pod."""

    def text(self) -> str:
        """Which pod it is, and the remedy."""
        text = f"pod {self.name} has the labels of r{self.revision} and is not its own"
        return f"{text}: delete it, or remove its label {LABEL_REVISION}"


def foreign_pod(job: Job) -> ForeignPod | None:
    """That of the oldest Revision; None where there is none."""
    revisions = job.observed.revisions.values()
    return min(
        (ForeignPod(state.revision, state.foreign_pod) for state in revisions if state.foreign_pod), default=None
    )
