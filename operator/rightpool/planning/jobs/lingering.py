"""What lingers, so that nothing is started beside it, since it may still write to the job's checkpoint.

What was to end and is still there: pods on a node that is lost, or a child that nobody deletes. Only who looks after
the cluster can know that it does not write, and end it. And pods that have a job's labels and are none of its
children's: somebody made them, or let them live on by themselves; nothing is ended for a start that they would hold up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rightpool.api.migration import Phase
from rightpool.api.wording import instant, sentence
from rightpool.contract import LABEL_REVISION
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import EndingPod

# Beyond the grace period of the pods. The kubelet ends what is left then within seconds.
UNENDED_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class Unended:
    """What of a Revision has not ended."""

    revision: int
    """Its number."""

    since: float
    """Unix seconds when it was to be gone."""

    pod: EndingPod | None
    """The pod that was to be gone first; None where the child itself stays."""

    def text(self) -> str:
        """What it is, why nothing goes on, and the remedy."""
        pod = self.pod
        if pod is None:
            text = f"r{self.revision} was told to end at {instant(self.since)}, is still there, and may still save"
            return sentence(text, remedy="see its metadata.finalizers and Events")
        where = "" if pod.node is None else f" on {pod.node}"
        lost = "" if pod.node is None else f"`kubectl delete node {pod.node}` if it is lost, else "
        remedy = f"{lost}`kubectl delete pod {pod.name} --force` if its program has ended"
        return sentence(f"pod {pod.name}{where} should have ended by {instant(pod.due)}", remedy=remedy)


def unended(job: Job, now: float) -> Unended | None:
    """That which was to be gone first; None where nothing is overdue."""
    first = first_to_end(job)
    return None if first is None or now - first.since <= UNENDED_SECONDS else first


def first_to_end(job: Job) -> Unended | None:
    """The same before it is overdue; None where nothing is to end."""
    found = [
        Unended(state.revision, state.ending.due, state.ending)
        for state in job.observed.revisions.values()
        if state.ending is not None
    ]
    migration = job.state.migration
    if migration is not None and migration.phase is Phase.DRAINING:
        left = job.revision(migration.moving.revision)
        if left.ending is None and (left.exists or left.active > 0):
            found.append(Unended(left.revision, migration.phase_since, None))
    return min(found, key=lambda entry: entry.since, default=None)


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
