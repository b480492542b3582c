"""A decision: what is to be done about a job, and why."""

from dataclasses import dataclass
from enum import StrEnum

from rightpool.api.conditions import Reason
from rightpool.hardware.placement import Placement
from rightpool.planning.candidate import Candidate


class Action(StrEnum):
    """What a decision does."""

    START = "Start"  # the first placement, or another where the job did not start
    KEEP = "Keep"  # nothing better, by the numbers
    HOLD = "Hold"  # something may be better, but acting now is not allowed or not certain enough
    RESIZE = "Resize"  # same pool, other size
    MOVE = "Move"  # other pool
    UPDATE = "Update"  # the user changed the workload: same loop, not verified
    ROLLBACK = "Rollback"  # back to where it was


MIGRATING_ACTIONS = frozenset({Action.RESIZE, Action.MOVE, Action.UPDATE})


@dataclass(frozen=True, slots=True)
class Decision:
    """candidate: the target where there is one; for Hold, what would have been done. message: evidence in numbers.

    purpose: why the candidate would be taken, where `reason` says why it is not.
    """

    action: Action
    reason: Reason
    message: str
    candidate: Candidate | None = None
    purpose: Reason | None = None

    @property
    def target(self) -> Placement | None:
        """Where to, None where nothing is to be moved."""
        return None if self.candidate is None else self.candidate.placement
