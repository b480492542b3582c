"""What the operator reports: the status of a ProfiledJob, as it is on the wire.

Measured and predicted numbers are strings of few digits, made by the `format_…` functions of `quantities`. Whatever is
not known is absent.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from rightpool.api.conditions import LIST_OF_CONDITIONS, Condition
from rightpool.api.model import ATOMIC, ApiModel, Time

MAX_HISTORY = 10
MAX_CONDITIONS = 16
MAX_COUNT = 10**9
"""Beyond what counts in a status can be."""


def _finite(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]!r} is no number")
    return text


def _amount(text: str) -> str:
    if float(_finite(text)) < 0:
        raise ValueError(f"{text[:40]!r} is below 0")
    return text


def _count(number: int) -> int:
    if not 0 <= number < MAX_COUNT:
        raise ValueError(f"{number} is not between 0 and {MAX_COUNT}")
    return number


# Checked on reading alone: a status is the operator's own to write, and whoever else did is told so by a condition.
Amount = Annotated[str, AfterValidator(_amount)]
"""A number, 0 or more."""

Balance = Annotated[str, AfterValidator(_finite)]
"""A number that may be below 0."""

Count = Annotated[int, AfterValidator(_count)]
"""A whole number that the operator counts with."""


class Outcome(StrEnum):
    """How a Migration ended."""

    VERIFIED = "Verified"  # delivered, or at least no worse than before
    ROLLED_BACK = "RolledBack"  # undone
    FAILED = "Failed"  # neither proven nor undone: the job runs where it was moved to
    HELD = "Held"  # given up before anything was touched
    SUPERSEDED = "Superseded"  # the user's edit or the job's end came first
    CARRIED_OUT = "CarriedOut"  # what the user asked for was done; it promised nothing


class PlacementStatus(ApiModel):
    """Where a Revision runs and how big it is."""

    revision: Count = Field(ge=0)
    """N of the child workload `<job>-r<N>`."""

    pool: str
    """AcceleratorPool."""

    chips: Count = Field(ge=0)
    """Chips of all replicas."""

    replicas: Count = Field(ge=0)
    """Pods."""

    capacity: str | None = None
    """OnDemand or Spot."""

    cost_per_hour: Amount | None = None
    """Dollars an hour."""

    since: Time | None = None
    """When every pod of the Revision first ran."""

    created_at: Time | None = None
    """When the Revision was decided on."""

    workload_hash: str | None = None
    """Of the pod template that the Revision was built from."""

    requested_chips: Count | None = None
    """Chips that spec.workload asked for then, so that a later edit is seen."""

    requested_replicas: Count | None = None
    """Replicas that spec.workload asked for then."""

    generation: int | None = None
    """The newest metadata.generation whose spec allows this placement, so that a later edit is seen."""


class TargetPlacement(ApiModel):
    """A placement that is not there yet, so it has no Revision."""

    pool: str
    """AcceleratorPool."""

    chips: Count = Field(ge=1)
    """Chips of all replicas."""

    replicas: Count = Field(ge=1)
    """Pods."""

    capacity: str | None = None
    """OnDemand or Spot."""

    cost_per_hour: Amount | None = None
    """Dollars an hour."""


class EstimateStatus(ApiModel):
    """A predicted number with its 80% interval."""

    median: Amount
    """As likely to be exceeded as not."""

    low: Amount
    """Exceeded with 90% probability."""

    high: Amount
    """Exceeded with 10% probability."""


class ProfileStatus(ApiModel):
    """What the job does to its chips, over a window on one Revision. A field that was not measured is absent."""

    window: str | None = None
    """Time that the profile covers."""

    measured_at: Time | None = None
    """End of the window."""

    samples_per_second: str | None = None
    """Samples consumed a second, all replicas together."""

    step_seconds: str | None = None
    """Median time of one optimizer step, seconds."""

    chip_busy: str | None = None
    """Share of the time in which anything ran on the chip."""

    compute_active: str | None = None
    """Share of the time in which compute units were active."""

    matrix_active: str | None = None
    """Share of the time in which tensor cores or MXU were active."""

    memory_bandwidth: str | None = None
    """Share of the chip's memory bandwidth in use."""

    memory_used_bytes: int | None = None
    """Peak accelerator memory of the fullest chip, bytes."""

    power_watts: str | None = None
    """Power of one chip, watts."""

    exposed_communication: str | None = None
    """Share of the step in which chips wait for each other."""

    input_wait: str | None = None
    """Share of the step in which chips wait for data."""

    scaling_efficiency: str | None = None
    """Throughput / (chips × throughput of one chip)."""

    bottleneck: str | None = None
    """What limits the job now."""

    quality: str | None = None
    """How the numbers were won: Measured, Derived or Partial."""


class CostStatus(ApiModel):
    """What the job costs, dollars."""

    per_hour: Amount | None = None
    """Dollars an hour now."""

    per_million_samples: Amount | None = None
    """Dollars for a million samples now."""

    spent: Amount | None = None
    """Dollars since the job started."""

    saved: Balance | None = None
    """Dollars saved against staying where the job started. Negative where moving did not pay."""

    as_of: Time | None = None
    """Until when spent and saved are counted; from then on perHour runs. Absent while the job holds no chips."""

    saving_per_hour: Balance | None = None
    """Dollars an hour that are saved now, against where the job would be without its moves."""

    unpriced_seconds: Amount | None = None
    """Seconds on chips whose price is not known; they are not in spent."""


class ColumnsStatus(ApiModel):
    """Amounts of `cost` as `kubectl get` shows them. Nothing is computed from these."""

    per_hour: str | None = None
    """Dollars an hour now."""

    per_million_samples: str | None = None
    """Dollars for a million samples now."""

    saved: str | None = None
    """Dollars saved so far, to the cent."""


class Recommendation(ApiModel):
    """What the operator would do, or is about to do."""

    id: str
    """Decision id, to be named in the annotation rightpool.dev/approve."""

    action: str
    """Start, Move, Resize or Update."""

    placement: TargetPlacement
    """Where to."""

    samples_per_second: EstimateStatus | None = None
    """Predicted samples a second there."""

    savings: str | None = None
    """Share of the cost for a sample that is saved."""

    reason: str
    """What it would bring, in one CamelCase word."""

    held_by: str | None = None
    """Why it is only a recommendation, in one CamelCase word. Absent: it is about to be carried out."""

    message: str = ""
    """The evidence in numbers."""


class MigrationStatus(ApiModel):
    """A decision that is being carried out. Written before each step, so that it can be continued after a crash."""

    id: str
    """Decision id."""

    action: str
    """Start, Move, Resize or Update."""

    phase: str
    """Planned, Checkpointing, Draining, Starting, WarmingUp or Verifying."""

    started_at: Time
    """When the decision was taken."""

    phase_started_at: Time
    """When this phase began."""

    rolling_back: bool = False
    """Whether the old placement is being restored."""

    from_: Annotated[PlacementStatus, Field(alias="from")]
    """The placement before."""

    to: PlacementStatus
    """The placement after."""

    predicted: EstimateStatus | None = None
    """Predicted samples a second."""

    predicted_cost_per_million_samples: EstimateStatus | None = None
    """Predicted dollars for a million samples."""

    baseline_samples_per_second: Amount | None = None
    """Samples a second before."""

    baseline_cost_per_million_samples: Amount | None = None
    """Dollars for a million samples before."""

    checkpoint_before: Time | None = None
    """The last save that was known when the save was asked for."""

    checkpoint_at: Time | None = None
    """The save that the new Revision starts from."""

    abandoned: PlacementStatus | None = None
    """While rolling back: the placement that did not deliver."""

    stopped_at: Time | None = None
    """When the Revision that is left was gone."""

    running_at: Time | None = None
    """When every pod of the new Revision ran."""

    lost_seconds: Amount | None = None
    """Time without progress, seconds."""

    realised_samples_per_second: Amount | None = None
    """Samples a second on the new placement."""

    realised_cost_per_million_samples: Amount | None = None
    """Dollars for a million samples on the new placement."""

    failure: str | None = None
    """While rolling back: why, in one CamelCase word."""

    failure_message: str | None = None
    """While rolling back: why, in numbers."""

    reason: str = ""
    """Why, in one CamelCase word."""

    message: str = ""
    """What is being waited for."""


class AvoidedPool(ApiModel):
    """A place where a move of this job had to be rolled back, or where it did not start."""

    pool: str
    """AcceleratorPool."""

    chips: Count = Field(ge=1)
    """Chips of all replicas."""

    until: Time | None = None
    """When it may be tried again. Absent: never."""

    reason: str
    """Why, in one CamelCase word."""


class LedgerEntry(ApiModel):
    """A decision with what it promised and what it delivered."""

    id: str
    """Decision id."""

    action: str
    """Start, Move, Resize or Update."""

    from_: Annotated[TargetPlacement | None, Field(alias="from")] = None
    """The placement before."""

    to: TargetPlacement | None = None
    """The placement after."""

    predicted_samples_per_second: Amount | None = None
    """Promised samples a second."""

    predicted_cost_per_million_samples: Amount | None = None
    """Promised dollars for a million samples."""

    baseline_samples_per_second: Amount | None = None
    """Samples a second before."""

    baseline_cost_per_million_samples: Amount | None = None
    """Dollars for a million samples before."""

    realised_samples_per_second: Amount | None = None
    """Delivered samples a second."""

    realised_cost_per_million_samples: Amount | None = None
    """Delivered dollars for a million samples."""

    started_at: Time | None = None
    """When the decision was taken."""

    finished_at: Time | None = None
    """When it was over."""

    outcome: Outcome
    """How it ended."""

    reason: str = ""
    """Why, in one CamelCase word."""

    message: str = ""
    """The evidence in numbers."""

    cost: Amount | None = None
    """What the move itself cost, dollars."""

    lost_seconds: Amount | None = None
    """Time without progress, seconds."""


class ProfiledJobStatus(ApiModel):
    """What the operator knows and does."""

    observed_generation: int | None = None
    """The metadata.generation that was looked at."""

    conditions: list[Condition] = Field(
        default_factory=list, max_length=MAX_CONDITIONS, json_schema_extra=LIST_OF_CONDITIONS
    )
    """Placed, Profiled, Efficient, CostEfficient, TargetsMet, Migrating, Verified, Degraded, Completed, Failed."""

    replicas: int = 0
    """Pods that run, for the scale subresource."""

    selector: str = ""
    """Label selector of the pods, for the scale subresource."""

    placement: PlacementStatus | None = None
    """Where the job runs and how big it is."""

    profile: ProfileStatus | None = None
    """What the job does to its chips."""

    cost: CostStatus | None = None
    """What the job costs."""

    columns: ColumnsStatus | None = None
    """The cost in few digits, for the columns of `kubectl get`."""

    recommendation: Recommendation | None = None
    """What the operator would do, or is about to do."""

    migration: MigrationStatus | None = None
    """The decision that is being carried out."""

    moves: Count = 0
    """Moves that the operator chose and carried out; an edit by the user is none."""

    ledger_count: Count = 0
    """Decisions so far; the next one is d-<ledgerCount+1>."""

    last_move_at: Time | None = None
    """When the last move was over."""

    avoid: list[AvoidedPool] = Field(default_factory=list, max_length=64, json_schema_extra=ATOMIC)
    """Places where a move of this job had to be rolled back, or where it did not start."""

    history: list[LedgerEntry] = Field(default_factory=list, max_length=MAX_HISTORY, json_schema_extra=ATOMIC)
    """The last ten decisions, the newest last."""
