"""Condition types and reasons, and the one way to change a condition.

Types and reasons are part of the API: scripts and alerts match on them. A message may change at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from math import floor
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from rightpool.api.model import keyed_by
from rightpool.api.record import Record
from rightpool.api.units import UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.wording import sentence

MAX_MESSAGE: Final = 32768
LIST_OF_CONDITIONS: Final[dict[str, Any]] = keyed_by("type")


class ConditionType(StrEnum):
    """Conditions of a ProfiledJob."""

    PLACED = "Placed"  # a Revision is running on a pool
    PROFILED = "Profiled"  # a fresh Profile of full quality exists
    EFFICIENT = "Efficient"  # the efficiency targets hold
    COST_EFFICIENT = "CostEfficient"  # nothing eligible is cheaper beyond minSavings, and the cost targets hold
    TARGETS_MET = "TargetsMet"  # every declared target holds
    MIGRATING = "Migrating"  # a Migration is in progress
    VERIFIED = "Verified"  # the last Migration delivered what it promised
    DEGRADED = "Degraded"  # the chips have a fault, or the operator lacks information
    COMPLETED = "Completed"  # the job succeeded; terminal
    FAILED = "Failed"  # the job failed; terminal


class PoolConditionType(StrEnum):
    """Conditions of an AcceleratorPool."""

    READY = "Ready"  # nodes of the pool can take pods
    PRICE_KNOWN = "PriceKnown"  # a price is declared or in the catalog
    FIGURES_VERIFIED = "FiguresVerified"  # a second source or a measurement confirms what the pool's chips can do
    TRUSTED = "Trusted"  # moves to the pool deliver, or none has failed so often that others are held back
    ALLOWED = "Allowed"  # the spec of at least one job lets it onto the pool
    CALIBRATED = "Calibrated"  # it was measured on a node of the pool what its chips can do


class PolicyConditionType(StrEnum):
    """Conditions of a PlacementPolicy."""

    READY = "Ready"  # the policy can be read, and holds
    TRUSTED = "Trusted"  # no pattern of failed moves holds back the fleet
    PLANNING = "Planning"  # the plan of the fleet is made; set once it has failed


class Reason(StrEnum):
    """Why a condition is as it is, or why something was not done."""

    # Placed
    RUNNING = "Running"  # every pod of the Revision runs
    STARTING = "Starting"  # pods exist and do not all run yet
    FINISHING = "Finishing"  # the pods have ended, and the child reports its end in a moment
    SUSPENDED = "Suspended"  # spec.suspend is true
    STOPPING = "Stopping"  # the job is suspended or deleted, and pods of it are still ending
    NAME_TAKEN = "NameTaken"  # a Job or Service of the child's name exists and is not the job's
    KIND_NOT_INSTALLED = "KindNotInstalled"  # the cluster has no definition of what the job is to run as
    WORKLOAD_NOT_FOUND = "WorkloadNotFound"  # there is no object as workloadRef names it
    WORKLOAD_NOT_RUNNING = "WorkloadNotRunning"  # no pod of the object that workloadRef names has a node of a pool
    WORKLOAD_CONTROLLED = "WorkloadControlled"  # another object controls the one that workloadRef names
    WORKLOAD_NOT_ADOPTABLE = "WorkloadNotAdoptable"  # its kind can't be adopted, or none of its pods asks for chips
    ADOPTED_BY_ANOTHER = "AdoptedByAnother"  # another ProfiledJob names the same object
    SPANS_POOLS = "SpansPools"  # pods of the object run in several pools
    ADOPT_LABEL_UNKNOWN = "AdoptLabelUnknown"  # an Event: the label rightpool.dev/adopt has a value that means nothing
    PODS_NOT_ENDING = "PodsNotEnding"  # pods were to end and are still there, and nothing is started beside them
    FOREIGN_POD = "ForeignPod"  # a foreign pod has the job's labels, and nothing is started beside it
    OPERATOR_FAILED = "OperatorFailed"  # the operator failed on this job because of a defect
    INVALID_SPEC = "InvalidSpec"  # the stored spec cannot be read, which admission should have prevented
    INVALID_STATUS = "InvalidStatus"  # the stored status is contradictory, so nothing is carried out
    INVALID_TEMPLATE = "InvalidTemplate"  # the API server refused the child, or it can't be built
    NO_FEASIBLE_POOL = "NoFeasiblePool"  # every pool is ruled out; the message has the reasons
    WAITING_FOR_CAPACITY = "WaitingForCapacity"  # a pool fits, but its chips are in use
    WAITING_FOR_OLDER_JOB = "WaitingForOlderJob"  # there is room, kept free for an older job that waits
    WAITING_FOR_QUOTA = "WaitingForQuota"  # the queue has not admitted the child
    CRASH_LOOP = "CrashLoop"  # the program fails, and Kubernetes starts it again
    CONTAINER_NOT_STARTED = "ContainerNotStarted"  # an image can't be pulled, or a container can't be made
    WARM_UP_FAILED = "WarmUpFailed"  # a server does not answer well the requests that warm it up
    PODS_REFUSED = "PodsRefused"  # its pods can't be made, such as for a ResourceQuota
    SCHEDULER_SILENT = "SchedulerSilent"  # the pods' scheduler has not looked at them for a minute
    START_PREVENTED = "StartPrevented"  # what the job itself asks for kept it from starting, not the pool
    START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"  # the new Revision did not run in time

    # Profiled
    MEASURED = "Measured"  # the window is covered and every field that the decision needs was measured
    WARMING_UP = "WarmingUp"  # the step time is not steady yet, or the window is not full
    CONTRADICTORY_TELEMETRY = "ContradictoryTelemetry"  # measured, without counters that contradict each other
    PEAK_EXCEEDED = "ModelFlopsAbovePeak"  # measured; FLOPs of the model are more than the chips can do
    NO_TELEMETRY = "NoTelemetry"  # no reading of the running pods yet
    STALE_TELEMETRY = "StaleTelemetry"  # the newest reading is older than the window
    PARTIAL_TELEMETRY = "PartialTelemetry"  # some fields or some pods are missing
    METRICS_UNREACHABLE = "MetricsUnreachable"  # no replica of a server answers with a page
    METRICS_UNREADABLE = "MetricsUnreadable"  # what replicas answer is no page of metrics
    DIALECT_UNKNOWN = "DialectUnknown"  # the page is that of no known server
    DIALECT_DIFFERS = "DialectDiffers"  # the page is another server's than the spec says
    COUNTERS_RESET = "CountersReset"  # a counter of replicas fell
    EXPORTERS_ALONE = "ExportersAlone"  # chips are measured, and the profiler is not in pods of an adopted object
    DEMAND_RECORD_SHORT = "DemandRecordShort"  # less than a day of a server's requests is recorded
    NO_REQUESTS = "NoRequests"  # no request came to a server in all that is recorded
    REQUESTS_FAIL = "RequestsFail"  # a server answers more requests with errors than may be
    LATENCY_UNRESOLVED = "LatencyUnresolved"  # the edges of a server's histogram do not tell whether its limit is kept
    MEANS_ONLY = "MeansOnly"  # a server tells no distribution of its times, and has a limit for a percentile
    BATCHES_UNSEEN = "BatchesUnseen"  # a server does not tell how long its batches take
    ROUTE_UNUSABLE = "RouteUnusable"  # weights of a server's HTTPRoute can't be written
    SERVER_STAYS = "ServerStays"  # nothing tells what a server would serve on other chips
    SHARED_CHIP = "SharedChip"  # processes of others work on a chip of the job
    TELEMETRY_UNAVAILABLE = "TelemetryUnavailable"  # the operator cannot reach the source of measurements
    HOST_NETWORK = "HostNetwork"  # the template sets hostNetwork, so the profiler is not injected
    USER_BASE_TAKEN = "UserBaseTaken"  # the template sets PYTHONUSERBASE and no PYTHONPATH
    USER_SITE_OFF = "UserSiteOff"  # PYTHONNOUSERSITE or -s, and no PYTHONPATH in the template
    PYTHON_ISOLATED = "PythonIsolated"  # Python runs with -I, -E or -S
    PROFILING_OFF = "ProfilingOff"  # spec.profiling.mode is Off and no exporter of the cluster covers the pods
    NOT_RUNNING = "NotRunning"  # no Revision runs

    # Efficient
    EFFICIENT_ENOUGH = "EfficientEnough"  # no efficiency target is missed, and there is no bottleneck to correct
    POOR_SCALING = "PoorScaling"  # minScalingEfficiency is missed
    LOW_FLOPS_UTILIZATION = "LowModelFlopsUtilization"  # minModelFlopsUtilization is missed
    INPUT_BOUND = "InputBound"  # the chips wait for data
    CHECKPOINT_BOUND = "CheckpointBound"  # the chips wait while the program saves
    COMMUNICATION_BOUND = "CommunicationBound"  # the chips wait for each other
    CHIP_IDLE = "ChipIdle"  # the chips do nothing
    REGRESSED = "Regressed"  # the program is slower since its template was edited
    SMALL_KERNELS = "SmallKernels"  # kernels follow each other, and fill a part of the chip
    THROTTLED = "Throttled"  # heat or a fault of their power slows the chips
    MEMORY_CAPACITY = "MemoryCapacity"  # the chips' memory is too small for the job

    # CostEfficient
    CHEAPEST = "Cheapest"  # no placement that the job may use is predicted to be cheaper
    NEAR_CHEAPEST = "NearCheapest"  # cheaper placements save less than adaptation.minSavings
    DOES_NOT_PAY_BACK = "DoesNotPayBack"  # a restart costs more than moving would save in the time that is left
    NOT_PREDICTABLE = "NotPredictable"  # no placement that the job may use can be predicted
    CHEAPER_POOL_MEETS_TARGETS = "CheaperPoolMeetsTargets"  # another pool costs less
    CHEAPER_SIZE_MEETS_TARGETS = "CheaperSizeMeetsTargets"  # another number of chips costs less
    FASTER_PLACEMENT_MEETS_TARGETS = "FasterPlacementMeetsTargets"  # the objective wants time, another is faster
    BETTER_TARGET_UNREACHABLE = "BetterTargetUnreachable"  # a target holds nowhere; another placement is better else
    OVER_BUDGET = "OverBudget"  # spent or projected cost exceeds budget
    COST_TARGET_UNREACHABLE = "CostTargetUnreachable"  # no eligible placement meets the cost targets
    DEADLINE_UNREACHABLE = "DeadlineUnreachable"  # no eligible placement is done by the deadline
    PROFILE_NEEDED = "ProfileNeeded"  # there is no Profile yet to compare with

    # TargetsMet
    TARGETS_HOLD = "TargetsHold"  # every declared target holds
    NO_TARGETS = "NoTargets"  # none is declared
    MIN_SCALING_EFFICIENCY_MISSED = "MinScalingEfficiencyMissed"  # targets.minScalingEfficiency is missed
    MIN_FLOPS_UTILIZATION_MISSED = "MinModelFlopsUtilizationMissed"  # targets.minModelFlopsUtilization is missed
    FLOPS_UNKNOWN = "ModelFlopsUnknown"  # targets.minModelFlopsUtilization is declared, and FLOPs are not known
    LATENCY_TARGET_MISSED = "LatencyTargetMissed"  # more requests take longer than targets.latency than may
    CAPACITY_BELOW_DEMAND = "CapacityBelowDemand"  # replicas.max is below what the recorded peak takes
    LATENCY_UNREACHABLE = "LatencyUnreachable"  # no number of replicas keeps targets.latency where the server is
    MAX_COST_PER_HOUR_EXCEEDED = "MaxCostPerHourExceeded"  # targets.maxCostPerHour is exceeded
    MAX_COST_PER_MILLION_SAMPLES_EXCEEDED = "MaxCostPerMillionSamplesExceeded"  # …maxCostPerMillionSamples is exceeded
    BUDGET_EXCEEDED = "BudgetExceeded"  # targets.budget is spent
    BUDGET_AT_RISK = "BudgetAtRisk"  # the job will probably cost more than targets.budget
    DEADLINE_MISSED = "DeadlineMissed"  # targets.deadline is over
    DEADLINE_AT_RISK = "DeadlineAtRisk"  # the job will probably be done after targets.deadline

    # Migrating: True
    MOVING = "Moving"  # to another pool
    RESIZING = "Resizing"  # to another number of chips on the same pool
    UPDATING = "Updating"  # the user changed the workload
    PLACEMENT_DISALLOWED = "PlacementDisallowed"  # the spec no longer allows the current placement
    ROLLING_BACK = "RollingBack"  # to the previous placement
    # Migrating: False
    SETTLED = "Settled"  # nothing to do
    CHECKPOINT_TIMEOUT = "CheckpointTimeout"  # no newer checkpoint appeared in checkpoint.timeout; the job ran on
    SAVE_FAILED = "SaveFailed"  # the program failed when it was asked to save; a move that can wait is given up
    NOT_CHECKPOINTABLE = "NotCheckpointable"  # checkpoint.mode is None
    ADAPTATION_OFF = "AdaptationOff"  # adaptation.mode is Off
    POLICY_RECOMMEND_ONLY = "PolicyRecommendOnly"  # the effective mode is Recommend: the decision is only recorded
    RELEASED = "Released"  # the user has it put back as it was, by `rightpool release`
    CHANGE_REFUSED = "ChangeRefused"  # the object can't become the Revision, by the API server or by its kind
    CHANGE_UNDONE = "ChangeUndone"  # a field manager, such as Argo CD's, has taken changes of the object back twice
    ADOPTION_RECOMMEND_ONLY = "AdoptionRecommendOnly"  # adoption.change is Recommend: nothing is done to the object
    AWAITING_APPROVAL = "AwaitingApproval"  # adaptation.requireApproval, and the annotation does not name the decision
    APPROVAL_UNKNOWN = "ApprovalUnknown"  # the annotation names no decision that could be carried out
    COOLING_DOWN = "CoolingDown"  # adaptation.cooldown since the last move is not over
    MINIMUM_RUN_TIME = "MinimumRunTime"  # the policy's minRunTime since the start is not over
    MORE_WINDOWS_NEEDED = "MoreWindowsNeeded"  # the saving is less than what hours of a job usually differ by
    MOVE_LIMIT_REACHED = "MoveLimitReached"  # adaptation.maxMoves are used up
    MIGRATION_LIMIT_REACHED = "MigrationLimitReached"  # the policy's maxConcurrentMigrations are under way
    MOVE_RATE_LIMIT_REACHED = "MoveRateLimitReached"  # the policy's maxMovesPerHour are used up
    BELOW_MIN_SAVINGS = "BelowMinSavings"  # the best saving is under adaptation.minSavings
    UNCERTAIN_SAVING = "UncertainSaving"  # the saving is likely, but not certain enough for a move
    POOL_SUSPECTED = "PoolSuspected"  # too many of the last moves to that pool had to be rolled back
    POOL_UNPROVEN = "PoolUnproven"  # as many as may try that pool, or double its use, are under way
    FLEET_PLANNED = "FleetPlanned"  # chips are shared out by the plan of the fleet again
    FLEET_PLAN_FAILED = "FleetPlanFailed"  # a defect: chips are shared out greedily
    FLEET_GAINS = "FleetGains"  # the fleet gains more by the move than its restart costs
    RESTARTS_OFTEN = "RestartsOften"  # restarts for others have taken their share of the job's time
    OUTBID = "Outbid"  # other jobs gain more from the chips
    CIRCUIT_BREAKER_OPEN = "CircuitBreakerOpen"  # too many of the last moves on several pools had to be rolled back
    DISRUPTED = "Disrupted"  # pods of a gang failed because Kubernetes ended another one of it: all start again
    SUPERSEDED = "Superseded"  # the user changed the spec while a Migration was under way

    # Verified
    DELIVERED = "Delivered"  # the result is at least the prediction, within noise
    VERIFICATION_PENDING = "VerificationPending"  # the window on the new Revision is not full
    BELOW_PREDICTION = "BelowPrediction"  # better than before, but less than predicted
    LATENCY_HELD = "LatencyHeld"  # of a server: enough of its requests were answered in time where it was moved to
    TOO_LATE = "TooLate"  # of a server: more requests took longer than targets.latency allows, so it went back
    ERRORS_ROSE = "ErrorsRose"  # of a server: more requests failed than before, so it went back
    TOO_FEW_REQUESTS = "TooFewRequests"  # of a server: too few came to tell, and none of them speaks against it
    ROLLED_BACK = "RolledBack"  # worse than before, so the old placement was restored
    SOURCE_NOT_HELD = "SourceNotHeld"  # worse than before, and a move without return: the chips left were not held
    NO_ROOM_TO_RETURN = "NoRoomToReturn"  # worse than before, and there is no room where the job came from
    RETURN_DOES_NOT_PAY = "ReturnDoesNotPay"  # worse than before, by less over the time left than a restart costs

    # Degraded
    HEALTHY = "Healthy"  # nothing is wrong
    STRAGGLER = "Straggler"  # one rank delays the others
    UNHEALTHY = "Unhealthy"  # a chip has a fault
    INVALID_VARIANT = "InvalidVariant"  # a variant of placement.variants can't be used
    PRICE_UNKNOWN = "PriceUnknown"  # the pool has no price, so costs are unknown
    ACCELERATOR_UNKNOWN = "AcceleratorUnknown"  # the catalog does not have the pool's accelerator
    POOL_UNCALIBRATED = "PoolUncalibrated"  # figures of the pool's chips are estimated, and nobody has measured them

    # Completed, Failed
    JOB_COMPLETED = "JobCompleted"  # the child Job succeeded
    JOB_FAILED = "JobFailed"  # the child Job failed and will not be tried again

    # AcceleratorPool
    NODES_READY = "NodesReady"  # at least one node can take pods
    PODS_NOT_COUNTED = "PodsNotCounted"  # the same, and the operator may not list the pods that others run there
    NO_NODES = "NoNodes"  # nodeSelector matches no node with the resource
    NODES_NOT_READY = "NodesNotReady"  # nodes match, and none can take pods
    PRICE_SUSPECT = "PriceSuspect"  # it has jumped by a factor, and counts once it has stood for two hours
    PRICE_CONTRADICTORY = "PriceContradictory"  # spec.price is of other capacity than the nodes, or operators differ
    CHIP_CONTRADICTORY = "ChipContradictory"  # spec.chip is not what another pool says, or lacks something
    PRICE_DECLARED = "PriceDeclared"  # spec.price gives it
    PRICE_FROM_VALUES = "PriceFromValues"  # catalog.prices of the chart's values gives it
    PRICE_FROM_CATALOG = "PriceFromCatalog"  # the catalog gives it

    # Allowed; False names what rules the pool out
    JOBS_ALLOWED = "JobsAllowed"  # at least one job may use the pool
    NOBODY_ALLOWED = "NobodyAllowed"  # the pool has chips, and the spec of every job that has not ended rules it out
    NO_JOBS_SEEN = "NoJobsSeen"  # there are no jobs, or the operator manages some namespaces only

    # PlacementPolicy
    POLICY_READ = "PolicyRead"  # the policy can be read, and holds

    # Trusted; False has the reason that holds moves back
    BREAKER_CLOSED = "BreakerClosed"  # no pattern of failed moves speaks against the pool, or the fleet
    # FiguresVerified
    TWO_SOURCES = "TwoSources"  # the catalog has them from two sources
    ONE_SOURCE = "OneSource"  # the catalog has them from one source
    CHIP_DECLARED = "ChipDeclared"  # spec.chip gives them
    CHIP_FROM_VALUES = "ChipFromValues"  # catalog.chips of the chart's values gives them
    VALUES_INVALID = "ValuesInvalid"  # the chart's values say something of the chip or its price that can't be used

    # Calibrated; FiguresVerified is Measured, too
    NOT_MEASURED = "NotMeasured"  # nobody has run `rightpool calibrate` on the pool
    CALIBRATION_VOID = "CalibrationVoid"  # spec.accelerator was another one when it was measured
    CALIBRATION_UNREADABLE = "CalibrationUnreadable"  # status.calibration is not what this version reads
    MEASUREMENT_INVALID = "MeasurementInvalid"  # a rate is zero, infinite or no number, or nothing was measured
    ABOVE_PEAK = "AbovePeak"  # a rate is above what the data sheet says that the chip can do at most
    MEASUREMENT_CONTRADICTORY = "MeasurementContradictory"  # rates do not fit each other, or the chip is another one


@value_object
class Condition(Record):
    """One observation about an object, as in metav1.Condition."""

    __pydantic_config__ = Record.__pydantic_config__ | ConfigDict(
        json_schema_extra={"required": ["type", "status", "reason", "message", "lastTransitionTime"]}
    )

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """What is observed."""

    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""

    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Why, in one CamelCase word."""

    message: Annotated[str, Field(max_length=MAX_MESSAGE)] = ""
    """The evidence in numbers, and what can be done."""

    observed_generation: Annotated[int | None, Field(ge=0)] = None
    """The metadata.generation that was looked at."""

    last_transition_time: UnixTime | None = None
    """When status last changed."""


def find_condition(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of this type, if there is one."""
    for condition in conditions:
        if condition.type == kind:
            return condition
    return None


def set_conditions(stored: Iterable[Condition], made: Iterable[Condition], now: float) -> tuple[Condition, ...]:
    """The stored conditions, each replaced by what was made of its type, and behind them what is new.

    `lastTransitionTime` changes only with the status. A message is a sentence that is read at once; the rest is in
    `rightpool explain`.
    """
    conditions = {condition.type: condition for condition in stored}
    moment = float(floor(now))
    for condition in made:
        old = conditions.get(condition.type)
        conditions[condition.type] = Condition(
            condition.type,
            condition.status,
            condition.reason,
            sentence(condition.message),
            condition.observed_generation,
            _since(old, condition.status, moment),
        )
    return tuple(conditions.values())


def _since(old: Condition | None, status: str, moment: float) -> float:
    """When the status last changed, Unix seconds."""
    if old is None or old.status != status or old.last_transition_time is None:
        return moment
    return old.last_transition_time
