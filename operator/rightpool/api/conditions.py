"""Condition types and reasons, and the one way to change a condition.

Types and reasons are part of the API: scripts and alerts match on them. A message may change at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from rightpool.api.model import Time

MAX_MESSAGE: Final = 32768
LIST_OF_CONDITIONS: Final[dict[str, Any]] = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


class ConditionType(StrEnum):
    """Conditions of a ProfiledJob."""

    PLACED = "Placed"  # a Revision is running on a pool
    PROFILED = "Profiled"  # a fresh Profile of full quality exists
    EFFICIENT = "Efficient"  # the efficiency targets hold
    COST_EFFICIENT = "CostEfficient"  # nothing eligible is cheaper beyond minSavings, and the cost targets hold
    TARGETS_MET = "TargetsMet"  # every declared target holds
    MIGRATING = "Migrating"  # a Migration is in progress
    VERIFIED = "Verified"  # the last Migration delivered what it promised
    DEGRADED = "Degraded"  # something is wrong with the chips or with what the operator needs to know
    COMPLETED = "Completed"  # the job succeeded; terminal
    FAILED = "Failed"  # the job failed; terminal


class PoolConditionType(StrEnum):
    """Conditions of an AcceleratorPool."""

    READY = "Ready"  # nodes of the pool can take pods
    PRICE_KNOWN = "PriceKnown"  # a price is declared or in the catalog


class Reason(StrEnum):
    """Why a condition is as it is, or why something was not done."""

    # Placed
    RUNNING = "Running"  # every pod of the Revision runs
    STARTING = "Starting"  # pods exist and do not all run yet
    SUSPENDED = "Suspended"  # spec.suspend is true
    STOPPING = "Stopping"  # the job is suspended or deleted, and pods of it are still ending
    NAME_TAKEN = "NameTaken"  # a Job or Service of the child's name exists and is not the job's
    FOREIGN_POD = "ForeignPod"  # a pod wears the job's labels, is none of its Jobs', and nothing is started beside it
    OPERATOR_FAILED = "OperatorFailed"  # the operator itself failed on this job, which is a defect of it
    INVALID_SPEC = "InvalidSpec"  # the stored spec cannot be read, which admission should have prevented
    INVALID_STATUS = "InvalidStatus"  # what the status says can't be so, so that nothing is done on it
    INVALID_TEMPLATE = "InvalidTemplate"  # the API server's dry run refused the child
    NO_FEASIBLE_POOL = "NoFeasiblePool"  # every pool is ruled out; the message says by what
    WAITING_FOR_CAPACITY = "WaitingForCapacity"  # a pool fits and its chips are all taken
    WAITING_FOR_QUOTA = "WaitingForQuota"  # the queue has not admitted the child
    START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"  # the new Revision did not run in time

    # Profiled
    MEASURED = "Measured"  # the window is covered and every field that the decision needs was measured
    WARMING_UP = "WarmingUp"  # the step time is not steady yet, or the window is not full
    NO_TELEMETRY = "NoTelemetry"  # nothing has been heard from the pods since they run
    STALE_TELEMETRY = "StaleTelemetry"  # something was heard, and not within the window
    PARTIAL_TELEMETRY = "PartialTelemetry"  # some fields or some pods are missing
    TELEMETRY_UNAVAILABLE = "TelemetryUnavailable"  # the operator cannot reach what it reads from
    HOST_NETWORK = "HostNetwork"  # the template sets hostNetwork, so the profiler is left out
    USER_BASE_TAKEN = "UserBaseTaken"  # the template sets PYTHONUSERBASE and no PYTHONPATH
    USER_SITE_OFF = "UserSiteOff"  # PYTHONNOUSERSITE or -s, and no PYTHONPATH in the template
    PYTHON_ISOLATED = "PythonIsolated"  # Python runs with -I, -E or -S
    PROFILING_OFF = "ProfilingOff"  # spec.profiling.mode is Off and no exporter of the cluster covers the pods
    NOT_RUNNING = "NotRunning"  # no Revision runs, so there is nothing to judge

    # Efficient
    EFFICIENT_ENOUGH = "EfficientEnough"  # no efficiency target is missed and nothing stands out
    POOR_SCALING = "PoorScaling"  # minScalingEfficiency is missed
    INPUT_BOUND = "InputBound"  # the chips wait for data
    COMMUNICATION_BOUND = "CommunicationBound"  # the chips wait for each other
    CHIP_IDLE = "ChipIdle"  # the chips do nothing
    THROTTLED = "Throttled"  # heat or a power cap slows the chips

    # CostEfficient
    CHEAPEST = "Cheapest"  # nothing that the job may use is predicted to be cheaper
    NEAR_CHEAPEST = "NearCheapest"  # what is cheaper saves less than adaptation.minSavings
    DOES_NOT_PAY_BACK = "DoesNotPayBack"  # a restart costs more than moving would save in the time that is left
    NOT_PREDICTABLE = "NotPredictable"  # what the job may use can't be predicted, so nothing can be compared
    CHEAPER_POOL_MEETS_TARGETS = "CheaperPoolMeetsTargets"  # another pool does it for less
    CHEAPER_SIZE_MEETS_TARGETS = "CheaperSizeMeetsTargets"  # another number of chips does it for less
    FASTER_PLACEMENT_MEETS_TARGETS = "FasterPlacementMeetsTargets"  # the objective wants time, another is faster
    OVER_BUDGET = "OverBudget"  # what is spent, or will be at this rate, exceeds budget
    COST_TARGET_UNREACHABLE = "CostTargetUnreachable"  # no eligible placement meets the cost targets
    DEADLINE_UNREACHABLE = "DeadlineUnreachable"  # no eligible placement is done by the deadline
    PROFILE_NEEDED = "ProfileNeeded"  # there is no Profile yet to compare with

    # TargetsMet
    TARGETS_HOLD = "TargetsHold"  # every declared target holds
    NO_TARGETS = "NoTargets"  # none is declared
    MIN_SCALING_EFFICIENCY_MISSED = "MinScalingEfficiencyMissed"  # targets.minScalingEfficiency is missed
    MAX_COST_PER_HOUR_EXCEEDED = "MaxCostPerHourExceeded"  # targets.maxCostPerHour is exceeded
    MAX_COST_PER_MILLION_SAMPLES_EXCEEDED = "MaxCostPerMillionSamplesExceeded"  # …maxCostPerMillionSamples is exceeded
    BUDGET_EXCEEDED = "BudgetExceeded"  # targets.budget is spent
    DEADLINE_MISSED = "DeadlineMissed"  # at this rate the job is done after targets.deadline

    # Migrating: True
    MOVING = "Moving"  # to another pool
    RESIZING = "Resizing"  # to another number of chips on the same pool
    UPDATING = "Updating"  # the user changed the workload
    NOT_ALLOWED_ANY_MORE = "NotAllowedAnyMore"  # the spec no longer allows where the job is
    ROLLING_BACK = "RollingBack"  # to the placement before
    # Migrating: False
    SETTLED = "Settled"  # nothing to do
    CHECKPOINT_TIMEOUT = "CheckpointTimeout"  # no newer checkpoint appeared in checkpoint.timeout; the job ran on
    NOT_CHECKPOINTABLE = "NotCheckpointable"  # checkpoint.mode is None
    ADAPTATION_OFF = "AdaptationOff"  # adaptation.mode is Off
    POLICY_RECOMMEND_ONLY = "PolicyRecommendOnly"  # the mode in force is Recommend: the decision is only written down
    AWAITING_APPROVAL = "AwaitingApproval"  # adaptation.requireApproval, and the annotation does not name the decision
    COOLING_DOWN = "CoolingDown"  # adaptation.cooldown since the last move is not over
    MINIMUM_RUN_TIME = "MinimumRunTime"  # the policy's minRunTime since the start is not over
    MOVE_LIMIT_REACHED = "MoveLimitReached"  # adaptation.maxMoves are used up
    MIGRATION_LIMIT_REACHED = "MigrationLimitReached"  # the policy's maxConcurrentMigrations are under way
    MOVE_RATE_LIMIT_REACHED = "MoveRateLimitReached"  # the policy's maxMovesPerHour are used up
    BELOW_MIN_SAVINGS = "BelowMinSavings"  # the best saving is under adaptation.minSavings
    UNCERTAIN_SAVING = "UncertainSaving"  # the saving is likely and not certain enough to act on
    CIRCUIT_BREAKER_OPEN = "CircuitBreakerOpen"  # too many of the fleet's last moves had to be rolled back
    SUPERSEDED = "Superseded"  # the user changed the spec while a Migration was under way

    # Verified
    DELIVERED = "Delivered"  # realised is at least what was predicted, within noise
    VERIFICATION_PENDING = "VerificationPending"  # the window on the new Revision is not full
    BELOW_PREDICTION = "BelowPrediction"  # better than before, and less than promised
    ROLLED_BACK = "RolledBack"  # worse than before, so the old placement was restored

    # Degraded
    HEALTHY = "Healthy"  # nothing is wrong
    STRAGGLER = "Straggler"  # one chip or pod holds up the others
    PRICE_UNKNOWN = "PriceUnknown"  # the pool has no price, so costs cannot be told
    ACCELERATOR_UNKNOWN = "AcceleratorUnknown"  # the catalog does not have the pool's accelerator

    # Completed, Failed
    JOB_COMPLETED = "JobCompleted"  # the child Job succeeded
    JOB_FAILED = "JobFailed"  # the child Job failed and will not be tried again

    # AcceleratorPool
    NODES_READY = "NodesReady"  # at least one node can take pods
    NO_NODES = "NoNodes"  # nodeSelector matches no node with the resource
    NODES_NOT_READY = "NodesNotReady"  # nodes match, and none can take pods
    PRICE_DECLARED = "PriceDeclared"  # spec.price gives it
    PRICE_FROM_CATALOG = "PriceFromCatalog"  # the catalog gives it


@dataclass(frozen=True, slots=True)
class Condition:
    """One observation about an object, as in metav1.Condition."""

    __pydantic_config__ = ConfigDict(
        alias_generator=to_camel,
        extra="ignore",
        json_schema_extra={"required": ["type", "status", "reason", "message", "lastTransitionTime"]},
    )

    type: Annotated[
        str,
        Field(
            min_length=1,
            max_length=316,
            description="What is observed.",
        ),
    ]
    status: Annotated[Literal["True", "False", "Unknown"], Field(description="Whether it is so.")]
    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            description="Why, in one CamelCase word.",
        ),
    ]
    message: Annotated[
        str, Field(max_length=MAX_MESSAGE, description="The evidence in numbers, and what can be done.")
    ] = ""
    observed_generation: Annotated[
        int | None, Field(ge=0, description="The metadata.generation that was looked at.")
    ] = None
    last_transition_time: Annotated[Time | None, Field(description="When status last changed.")] = None


def find_condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of this type, if there is one."""
    return next((condition for condition in conditions if condition.type == kind), None)


def set_condition(conditions: list[Condition], condition: Condition, now: datetime) -> list[Condition]:
    """The conditions with this one in place of the one of its type.

    `lastTransitionTime` changes only when the status flips: it says since when something is so, not when it was last
    looked at. When nothing changed the same list is returned, so that the caller can tell that there is nothing to
    write. A message that is too long is cut: a status that the API server refuses would hide everything else.
    """
    old = find_condition(conditions, condition.type)
    since = old.last_transition_time if old is not None and old.status == condition.status else None
    message = condition.message
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 1] + "…"
    new = replace(condition, message=message, last_transition_time=since or now.replace(microsecond=0))
    if old is None:
        return [*conditions, new]
    if old == new:
        return conditions
    return [new if other.type == new.type else other for other in conditions]
