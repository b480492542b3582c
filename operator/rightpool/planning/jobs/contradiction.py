"""What a status says that can't be so: nothing is done on it, because whatever was done might end work that runs.

A status is written by the operator alone, where admission sees to it. Elsewhere a backup that was put back, an older
version or a hand may have written it. Nothing that the state machine does by itself leads to what is found here.
"""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState

# Phases in which the target is where the job is.
_ARRIVED = frozenset({Phase.STARTING, Phase.WARMING_UP, Phase.VERIFYING})


@dataclass(frozen=True, slots=True)
class UnreadableStatus:
    """The status can't be read."""

    problem: str
    """What the parser found, with field and remedy."""


@dataclass(frozen=True, slots=True)
class UnplacedMigration:
    """There is a migration, and no placement that it could begin at."""


@dataclass(frozen=True, slots=True)
class BackwardMigration:
    """The Revision that a migration goes to does not come after the one that it leaves."""

    target: int
    """Number of the Revision that it goes to."""
    left: int
    """Number of the one that it leaves."""


@dataclass(frozen=True, slots=True)
class MisplacedMigration:
    """The phase of a migration says that the job is at one Revision, and the placement says another."""

    phase: Phase
    """As it is stored."""
    revision: int
    """Number of the Revision where the phase says that the job is."""
    placed: int
    """Number of the one that the placement says."""


@dataclass(frozen=True, slots=True)
class UnplacedRevision:
    """A Revision runs that the status does not name."""

    revision: int
    """The newest that runs."""

    placed: int | None
    """The one that the status names, which does not exist; None where it names none."""


Contradiction = UnreadableStatus | UnplacedMigration | BackwardMigration | MisplacedMigration | UnplacedRevision


def contradiction(job: Job) -> Contradiction | None:
    """What is wrong with the job's status; None where nothing is."""
    if job.unreadable is not None:
        return UnreadableStatus(job.unreadable)
    ref, migration = job.state.revision, job.state.migration
    if migration is not None:
        problem = _of_migration(ref, migration)
        if problem is not None:
            return problem
    if ref is not None and job.revision(ref.revision).exists:
        return None
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
