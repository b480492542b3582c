"""A decision: what is to be done about a job, and why."""

from dataclasses import dataclass
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.planning.jobs.adopted import UNFOLLOWED
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.evidence import Evidence, Limit
from rightpool.planning.offers.targets.registry import TARGETS

MIGRATING_ACTIONS = frozenset({Action.RESIZE, Action.MOVE, Action.UPDATE})

_BETTER: Final = {target.missed for target in TARGETS} | {
    Reason.CHEAPER_POOL_MEETS_TARGETS,
    Reason.CHEAPER_SIZE_MEETS_TARGETS,
    Reason.FASTER_PLACEMENT_MEETS_TARGETS,
    Reason.BETTER_TARGET_UNREACHABLE,
    Reason.PLACEMENT_DISALLOWED,
    Reason.FLEET_GAINS,
}

# For what reasons each is decided, for who has to know all of them before the first.
REASONS: Final = {
    Action.START: frozenset({Reason.STARTING, Reason.START_DEADLINE_EXCEEDED}),
    Action.UPDATE: frozenset({Reason.UPDATING}),
    Action.RESIZE: _BETTER - {Reason.CHEAPER_POOL_MEETS_TARGETS},
    Action.MOVE: _BETTER - {Reason.CHEAPER_SIZE_MEETS_TARGETS},
    Action.KEEP: frozenset(
        {
            Reason.CHEAPEST,
            Reason.BELOW_MIN_SAVINGS,
            Reason.DOES_NOT_PAY_BACK,
            Reason.NOT_PREDICTABLE,
            Reason.ADAPTATION_OFF,
            Reason.SETTLED,
            Reason.JOB_COMPLETED,
            Reason.JOB_FAILED,
        }
    ),
    Action.HOLD: frozenset(
        {
            # Not judged yet
            Reason.INVALID_SPEC,
            Reason.INVALID_STATUS,
            Reason.INVALID_TEMPLATE,
            Reason.NAME_TAKEN,
            Reason.FOREIGN_POD,
            Reason.KIND_NOT_INSTALLED,
            *UNFOLLOWED,
            Reason.OPERATOR_FAILED,
            Reason.SUSPENDED,
            Reason.BUDGET_EXCEEDED,
            Reason.STARTING,
            Reason.WAITING_FOR_QUOTA,
            Reason.CRASH_LOOP,
            Reason.TELEMETRY_UNAVAILABLE,
            Reason.PROFILING_OFF,
            Reason.NO_TELEMETRY,
            Reason.WARMING_UP,
            Reason.STALE_TELEMETRY,
            Reason.PARTIAL_TELEMETRY,
            Reason.SHARED_CHIP,
            Reason.SERVER_STAYS,
            Reason.ROUTE_UNUSABLE,
            Reason.DEMAND_RECORD_SHORT,
            Reason.BATCHES_UNSEEN,
            Reason.NO_REQUESTS,
            Reason.PRICE_UNKNOWN,
            # Under way
            Reason.MOVING,
            Reason.RESIZING,
            Reason.UPDATING,
            Reason.ROLLING_BACK,
            # Nothing to gain
            Reason.NO_FEASIBLE_POOL,
            Reason.WAITING_FOR_CAPACITY,
            Reason.WAITING_FOR_OLDER_JOB,
            *(target.unreachable for target in TARGETS),
            Reason.UNCERTAIN_SAVING,
            # Not allowed
            Reason.POLICY_RECOMMEND_ONLY,
            Reason.ADOPTION_RECOMMEND_ONLY,
            Reason.CHANGE_REFUSED,
            Reason.CHANGE_UNDONE,
            Reason.NOT_CHECKPOINTABLE,
            Reason.COOLING_DOWN,
            Reason.MINIMUM_RUN_TIME,
            Reason.MORE_WINDOWS_NEEDED,
            Reason.MOVE_LIMIT_REACHED,
            Reason.MIGRATION_LIMIT_REACHED,
            Reason.MOVE_RATE_LIMIT_REACHED,
            Reason.POOL_SUSPECTED,
            Reason.POOL_UNPROVEN,
            Reason.OUTBID,
            Reason.RESTARTS_OFTEN,
            Reason.CIRCUIT_BREAKER_OPEN,
            Reason.CHECKPOINT_TIMEOUT,
            Reason.SAVE_FAILED,
        }
    ),
}


@dataclass(frozen=True, slots=True)
class Held:
    """A decision that has to wait."""

    limit: Limit
    """What has to end first."""
    decision: "Decision"
    """What is done after that."""


@value_object
class Decision:
    """What is to be done about a job, by type and numbers; reporting/decision_texts.py says it in words."""

    action: Action
    """What is done; Hold where nothing can be."""
    reason: Reason
    """Why; of Hold, why not."""
    candidate: Candidate | None = None
    """The target where there is one; for Hold, what would have been done."""
    purpose: Reason | None = None
    """Why the candidate would be taken, where `reason` says why it is not."""
    evidence: Evidence | Held | None = None
    """What the sentence needs beside the job and its candidates."""

    @property
    def target(self) -> Placement | None:
        """Where to, None where nothing is to be moved."""
        return None if self.candidate is None else self.candidate.placement
