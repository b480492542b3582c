"""What a status says that can't be so: nothing is done on it, because whatever was done might end work that runs.

A status is written by the operator alone, where admission sees to it. Elsewhere a backup that was put back, an older
version or a hand may have written it. Nothing that the state machine does by itself leads to what is found here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.api.value_object import value_object
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState

_UNDO_MIGRATION: Final = "put it back, or remove status.migration"
# Phases in which the target is where the job is.
_ARRIVED = frozenset({Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING})


class Contradiction(ABC):
    """What a status says that can't be so."""

    @abstractmethod
    def text(self, child: Callable[[int], str]) -> str:
        """The field that is wrong and the remedy. child: what Kubernetes calls the child of a Revision, such as Job
        train-r2."""


@value_object
class UnreadableStatus(Contradiction):
    """The status can't be read."""

    problem: str
    """What the parser found, with field and remedy."""

    def text(self, child: Callable[[int], str]) -> str:
        return self.problem


@value_object
class UnplacedMigration(Contradiction):
    """There is a migration, and no placement that it could begin at."""

    def text(self, child: Callable[[int], str]) -> str:
        return f"status.migration is there and status.placement is not: {_UNDO_MIGRATION}"


@value_object
class BackwardMigration(Contradiction):
    """The Revision that a migration goes to does not come after the one that it leaves."""

    target: int
    """Number of the Revision that it goes to."""
    left: int
    """Number of the one that it leaves."""

    def text(self, child: Callable[[int], str]) -> str:
        return f"status.migration.to.revision r{self.target} is not newer than r{self.left} of .from: {_UNDO_MIGRATION}"


@value_object
class MisplacedMigration(Contradiction):
    """The phase of a migration says that the job is at one Revision, and the placement says another."""

    phase: Phase
    """As it is stored."""
    revision: int
    """Number of the Revision where the phase says that the job is."""
    placed: int
    """Number of the one that the placement says."""

    def text(self, child: Callable[[int], str]) -> str:
        return (
            f"status.migration is {self.phase.value} with r{self.revision}, and status.placement.revision is "
            f"r{self.placed}: {_UNDO_MIGRATION}"
        )


@value_object
class UnplacedRevision(Contradiction):
    """A Revision runs that the status does not name."""

    revision: int
    """The newest that runs."""

    placed: int | None
    """The one that the status names, which does not exist; None where it names none."""

    def text(self, child: Callable[[int], str]) -> str:
        named = "missing" if self.placed is None else f"r{self.placed}, which is not there,"
        runs = f"r{self.revision}"
        return (
            f"status.placement.revision is {named} and {runs} runs: name {runs}, or delete its "
            f"{child(self.revision)} to start anew"
        )


def contradiction(job: Job) -> Contradiction | None:
    """What is wrong with the job's status; None where nothing is."""
    if job.unreadable is not None:
        return UnreadableStatus(job.unreadable)
    ref, migration = job.state.revision, job.state.migration
    if migration is not None:
        problem = _of_migration(ref, migration)
        if problem is not None:
            return problem
    if job.spec.workload_ref is not None or (ref is not None and job.revision(ref.revision).exists):
        return None  # an object that somebody else has made may run before it is found
    alive = [state.revision for state in job.observed.revisions.values() if _runs(state)]
    return UnplacedRevision(max(alive), None if ref is None else ref.revision) if alive else None


def _of_migration(ref: Revision | None, migration: Migration) -> Contradiction | None:
    if ref is None:
        return UnplacedMigration()
    target, left = migration.target.revision, migration.moving.revision
    if target <= left:
        return BackwardMigration(target, left)
    there = target if migration.phase in _ARRIVED else left
    return None if ref.revision == there else MisplacedMigration(migration.phase, there, ref.revision)


def _runs(state: RevisionState) -> bool:
    return (
        state.exists
        and state.active > 0
        and not (state.deleting or state.suspended or state.succeeded or state.failed or state.earlier)
    )
