"""Commands: what a persisted state asks of the cluster. Each is idempotent, and safe to repeat after a crash."""

from dataclasses import dataclass

from rightpool.planning.revision import RevisionRef


@dataclass(frozen=True, slots=True)
class EnsureRevision:
    """The child of this Revision exists (suspended where the user suspends). Never while another Revision has pods."""

    ref: RevisionRef
    suspend: bool = False


@dataclass(frozen=True, slots=True)
class EndRevision:
    """The child is deleted, its pods with their grace period. Not where it has succeeded in the meantime."""

    revision: int


@dataclass(frozen=True, slots=True)
class RequestCheckpoint:
    """The sidecars of this Revision are asked for a save, under the migration's id (repeats are one request)."""

    revision: int
    id: str


Command = EnsureRevision | EndRevision | RequestCheckpoint
