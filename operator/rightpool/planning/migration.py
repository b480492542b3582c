"""A migration: the persisted state of carrying out one decision. The transitions are in transitions.py."""

from dataclasses import dataclass
from enum import StrEnum

from rightpool.api.conditions import Reason
from rightpool.planning.decision import Action
from rightpool.planning.revision import RevisionRef
from rightpool.prediction.estimate import Estimate


class Phase(StrEnum):
    """Where a migration stands. Each is persisted before anything that belongs to it is done."""

    PLANNED = "Planned"  # written down; waits for approval where that is required
    CHECKPOINTING = "Checkpointing"  # a save was asked for; the old Revision runs on
    DRAINING = "Draining"  # the old Revision is being ended; nothing new is created
    STARTING = "Starting"  # the old Revision is gone; the new one is created and must come up
    WARMING_UP = "WarmingUp"  # all pods run; the Profile is not steady yet
    VERIFYING = "Verifying"  # a full window on the new Revision is being measured


@dataclass(frozen=True, slots=True)
class Migration:
    """Times in Unix seconds, money in dollars per million samples.

    rolling_back: the same phases, on the way back to `source.placement` (as a Revision of its own).
    target: what is being created; on the way back its placement is the source's.
    abandoned: the target of the way out, once rolling back.
    saved_before: the newest save known when one was asked for; saved_at: the save that answered.
    stopped_at: when the Revision that is left was gone; running_at: when all pods of the target ran.
    lost_seconds: without progress, over both ways.
    """

    id: str
    action: Action
    phase: Phase
    source: RevisionRef
    target: RevisionRef
    created_at: float
    phase_since: float
    reason: Reason
    message: str
    predicted: Estimate | None = None
    predicted_cost: Estimate | None = None
    baseline: float | None = None
    baseline_cost: float | None = None
    rolling_back: bool = False
    abandoned: RevisionRef | None = None
    saved_before: float | None = None
    saved_at: float | None = None
    stopped_at: float | None = None
    running_at: float | None = None
    lost_seconds: float = 0.0
    realised: float | None = None
    realised_cost: float | None = None
    failure: Reason | None = None  # why it is rolling back
    failure_message: str | None = None

    @property
    def promises(self) -> bool:
        """Whether it promised anything: what did not is not verified, and has nowhere to go back to."""
        return self.action not in (Action.UPDATE, Action.START)

    @property
    def demanded(self) -> bool:
        """Whether the user asked for it, by an edit or for a start: limits of the operator's own moves do not hold it
        back."""
        before, after = self.source.generation, (self.abandoned or self.target).generation
        left = self.reason is Reason.NOT_ALLOWED_ANY_MORE and before is not None and before != after
        return not self.promises or left

    @property
    def moving(self) -> RevisionRef:
        """The Revision that is being left in the phases up to Draining."""
        if self.rolling_back:
            assert self.abandoned is not None
            return self.abandoned
        return self.source
