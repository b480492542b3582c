"""A status that contradicts itself, in words."""

from __future__ import annotations

from typing import Final

from rightpool.planning.jobs.contradiction import (
    BackwardMigration,
    Contradiction,
    MisplacedMigration,
    UnplacedMigration,
    UnplacedRevision,
    UnreadableStatus,
)
from rightpool.planning.jobs.job import Job
from rightpool.workloads.kinds.registry import kind_name
from rightpool.workloads.names import child_name

_UNDO_MIGRATION: Final = "put it back, or remove status.migration"


def contradiction_text(found: Contradiction, job: Job) -> str:
    """The field that is wrong and the remedy."""
    match found:
        case UnreadableStatus():
            return found.problem
        case UnplacedMigration():
            return f"status.migration is there and status.placement is not: {_UNDO_MIGRATION}"
        case BackwardMigration():
            return (
                f"status.migration.to.revision r{found.target} is not newer than r{found.left} of .from: "
                f"{_UNDO_MIGRATION}"
            )
        case MisplacedMigration():
            return (
                f"status.migration is {found.phase.value} with r{found.revision}, and status.placement.revision is "
                f"r{found.placed}: {_UNDO_MIGRATION}"
            )
        case UnplacedRevision():
            named = "missing" if found.placed is None else f"r{found.placed}, which is not there,"
            runs = f"r{found.revision}"
            return (
                f"status.placement.revision is {named} and {runs} runs: name {runs}, or delete its "
                f"{kind_name(job.spec.workload)} {child_name(job.key.name, found.revision)} to start anew"
            )
