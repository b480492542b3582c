"""A frozen snapshot of the fleet: everything a plan depends on, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.pool import Pool
from rightpool.planning.account import Account
from rightpool.planning.ledger import AvoidedPlacement, LedgerEntry
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef, RevisionState
from rightpool.profiles.diagnosis import Diagnosis
from rightpool.profiles.profile import Profile


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """Namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class JobState:
    """One ProfiledJob, with what is known about it.

    ref, migration, moves, last_move_at, decisions, avoid, history, account: as persisted in status.
    revisions: children seen in the cluster, by number. profile: of the current Revision. approved: the decision id in
    the approval annotation. invalid, unreadable: why the spec can't be used, and why the status can't be, in the
    user's words. checkpoint_at: newest save seen.
    absent: why the pool of `ref` can't be used, with the remedy; None where it can.
    """

    key: JobKey
    uid: str
    generation: int
    created_at: float
    spec: ProfiledJobSpec
    workload_hash: str
    ref: RevisionRef | None = None
    migration: Migration | None = None
    revisions: Mapping[int, RevisionState] = field(default_factory=dict)
    profile: Profile | None = None
    diagnosis: Diagnosis | None = None
    checkpoint_at: float | None = None
    checkpoint_error: str | None = None
    absent: str | None = None
    moves: int = 0
    last_move_at: float | None = None
    decisions: int = 0
    avoid: tuple[AvoidedPlacement, ...] = ()
    history: tuple[LedgerEntry, ...] = ()
    account: Account = field(default_factory=Account)
    approved: str | None = None
    invalid: str | None = None
    unreadable: str | None = None
    deleting: bool = False
    finished: str | None = None  # "Completed" or "Failed", once terminal

    @property
    def edited(self) -> bool:
        """Whether the user has edited the spec since it was last seen to allow where the job is."""
        seen = None if self.ref is None else self.ref.generation
        return seen is not None and seen < self.generation

    @property
    def awaits_approval(self) -> bool:
        """Whether the migration that was decided on waits for its user's word."""
        migration = self.migration
        if migration is None or migration.phase is not Phase.PLANNED or migration.demanded:
            return False
        return self.spec.adaptation.require_approval and self.approved != migration.id

    def revision(self, number: int) -> RevisionState:
        """What is seen of a Revision; a Revision without a child is one that does not exist."""
        return self.revisions.get(number) or RevisionState(revision=number, exists=False)

    @property
    def obstacle(self) -> str | None:
        """Why the job does not start where it is placed: its pods say so, or there is no pool to make any for. None
        where nothing is known to be in the way."""
        if self.ref is None:
            return None
        state = self.revision(self.ref.revision)
        return state.blocked if state.exists else self.absent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """now: Unix seconds. telemetry: whether measurements could be read at all in this cycle."""

    jobs: Mapping[JobKey, JobState]
    pools: Mapping[str, Pool]
    policy: PlacementPolicySpec
    now: float
    telemetry: bool = True
