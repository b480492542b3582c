"""What the operator reports: the status of a ProfiledJob. Whatever is not known is absent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.action import Action
from rightpool.api.conditions import LIST_OF_CONDITIONS, Condition, ConditionType, Reason, find_condition
from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.record import INLINE, Record
from rightpool.api.state import JobState
from rightpool.api.traits import ModelTraits
from rightpool.api.units import WORD, Figure, Quantity, Share, UnixTime
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples

MAX_CONDITIONS: Final = 16
MAX_DERIVED: Final = 32


@value_object
class ProfileStatus(Record):
    """What the job does to its chips, over a window on one Revision. A field that was not measured is absent."""

    window: str | None = None
    """Time that the profile covers."""

    measured_at: UnixTime | None = None
    """End of the window."""

    samples_per_second: Figure | None = None
    """Samples consumed a second, all replicas together."""

    steps_per_second: Figure | None = None
    """Optimizer steps of the job a second, where it is measured by them: samples are not seen. Instead of
    samplesPerSecond."""

    step_seconds: Figure | None = None
    """Median time of one optimizer step, seconds."""

    chip_busy: Share | None = None
    """Share of the time in which anything ran on the chip."""

    compute_active: Share | None = None
    """Share of the time in which compute units were active."""

    matrix_active: Share | None = None
    """Share of the time in which tensor cores or MXU were active."""

    memory_bandwidth: Share | None = None
    """Share of the chip's memory bandwidth in use."""

    memory_used_bytes: int | None = None
    """Peak accelerator memory of the fullest chip, bytes."""

    power_watts: Figure | None = None
    """Power of one chip, watts."""

    joules_per_sample: Figure | None = None
    """Energy of all chips for a sample, joules."""

    joules_per_step: Figure | None = None
    """The same for an optimizer step, where throughput is stepsPerSecond."""

    exposed_communication: Share | None = None
    """Share of the step in which chips wait for each other."""

    input_wait: Share | None = None
    """Share of the step in which chips wait for data."""

    saving: Share | None = None
    """Share of the time in which the program stands still for saves. Absent before the first one."""

    throttle: Share | None = None
    """Share of the time in which a fault, such as heat, holds clocks down. Absent where that is too short to count."""

    clock: Share | None = None
    """Clock of the slowest chip as a share of its maximum. Absent where no fault holds it down."""

    others: Share | None = None
    """Share of the time in which processes that are not the job's work on a chip of it. Absent where that is too little
    to count."""

    scaling_efficiency: Share | None = None
    """Throughput / (chips × throughput of one chip)."""

    model_flops_utilization: Share | None = None
    """FLOP/s of the model / (chips × peak dense FLOP/s at its precision). Absent where FLOPs or precision are not
    known."""

    bottleneck: str | None = None
    """What limits the job now."""

    model: ModelTraits | None = None
    """What the program says of its model."""

    quality: str | None = None
    """How the numbers were won: Measured, Derived or Partial."""

    derived: Annotated[tuple[str, ...], Field(max_length=MAX_DERIVED, exclude_if=not_)] = ()
    """Names of the fields that are derived, and not measured: such as samples a second from steps."""

    @property
    def throughput(self) -> tuple[float, WorkUnit] | None:
        """Units of work a second, and which; None where it was not measured."""
        if self.samples_per_second is not None:
            return float(self.samples_per_second), WorkUnit.SAMPLES
        return None if self.steps_per_second is None else (float(self.steps_per_second), WorkUnit.STEPS)


@value_object
class OutlookStatus(Record):
    """The rest of the job at the present rate. Needs `spec.progress.totalSamples`."""

    progress: Share | None = None
    """Share of the samples that are done."""

    finish_at: UnixTime | None = None
    """When the job will be done. Absent also where that is after the year 9999."""


@value_object
class ColumnsStatus(Record):
    """What `kubectl get` shows in few words. Nothing is computed from these.

    What the job does is here while it is measured where it runs; `profile` keeps what was measured last.
    """

    bottleneck: str | None = None
    """What limits the job now."""

    samples_per_second: Figure | None = None
    """Samples consumed a second now."""

    steps_per_second: Figure | None = None
    """Optimizer steps of the job a second now, where samples are not seen."""

    scaling_efficiency: Figure | None = None
    """Throughput / (chips × throughput of one chip) now."""

    requests_per_second: Figure | None = None
    """Requests of a server a second now."""

    p99: str | None = None
    """Time by which a server has answered 99% of its requests now."""

    target: str | None = None
    """How soon a server must answer, such as p99 50 ms."""

    per_hour: str | None = None
    """Dollars an hour now."""

    per_million: str | None = None
    """Dollars for a million samples now; with the word steps or requests where it is for a million of those."""

    saved: str | None = None
    """Dollars saved so far, to the cent."""

    progress: str | None = None
    """Percentage of the samples that are done."""

    goes_to: str | None = None
    """Where the operator recommends to move the job."""

    saves: str | None = None
    """Percentage of the cost for the same work that the move would save."""


MAX_SIDES: Final = 6
"""Pools of which a server's status tells."""


@value_object
class PlaceSize(Record):
    """What a server would be in one pool, over its recorded week."""

    pool: str
    """Name of the AcceleratorPool."""

    fixed: Figure
    """Seconds that any batch takes, or any step that brings a token."""

    each: Figure
    """Seconds that one more request of it adds."""

    probability: Share
    """That the limit is kept with so many replicas; with hardly any requests where servable is absent."""

    load: Figure
    """Requests of a batch at the peak."""

    seen: Figure
    """The most of them that was seen in a batch."""

    doubt: Figure
    """Standard deviation of the logarithm of what a batch takes."""

    spare: Figure
    """Times as long as that which batches may take until the limit is not kept."""

    measured: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether its batches were timed there. Absent: they are predicted."""

    servable: Annotated[Figure, Field(exclude_if=not_)] = 0.0
    """Requests a second that a replica takes with the limit kept, at the peak. Absent: none."""

    replicas: Annotated[int, Field(exclude_if=not_)] = 0
    """At the peak of the week, whatever is allowed."""

    hours: Figure | None = None
    """Hours of a replica for a million of the week's requests, or of its tokens where these have a target. Absent: the
    limit is not kept."""

    within: Figure | None = None
    """Seconds within which the share of the week's requests, or of its next tokens, is that has a limit. Absent: not
    known, or without one."""

    first: Figure | None = None
    """Seconds within which the share of the week's first tokens comes that has a limit. Absent: not known, or without
    one."""

    held: Figure | None = None
    """Requests whose keys and values a replica has memory for, of a server that generates tokens. Absent: not known."""

    @property
    def alone(self) -> float:
        """Seconds of one request by itself."""
        return self.fixed + self.each


@value_object
class TokenStatus(Record):
    """What a server that makes tokens makes, over up to five minutes. A field that was not measured is absent."""

    per_second: Figure | None = None
    """Tokens that all replicas together make."""

    cost_per_million: Figure | None = None
    """Dollars for a million of them, at this rate."""

    first_at_least: Figure | None = None
    """Seconds: 99% of the requests had not their first token before that. An edge of the server's histogram."""

    first_at_most: Figure | None = None
    """Seconds: 99% of the requests had their first token by then. Absent where that is beyond the last edge."""

    next_at_least: Figure | None = None
    """Seconds from one token to the next: 99% took no less than that. An edge of the server's histogram."""

    next_at_most: Figure | None = None
    """Seconds from one token to the next: 99% took no more. Absent where that is beyond the last edge."""


@value_object
class ServerStatus(Record):
    """The requests of a server, over up to five minutes, and what its record says of its size. A field that was not
    measured is absent."""

    requests_per_second: Figure | None = None
    """All replicas together."""

    error_ratio: Share | None = None
    """Requests that the server failed, of all."""

    p99_at_least: Figure | None = None
    """Seconds: 99% of the requests were not answered before that. An edge of the server's histogram."""

    p99_at_most: Figure | None = None
    """Seconds: 99% of the requests were answered by then. Absent where that is beyond the last edge."""

    mean_seconds: Figure | None = None
    """Mean time of a request, seconds."""

    cost_per_million: Figure | None = None
    """Dollars for a million requests, at this rate."""

    quality: str | None = None
    """Measured, or Derived: completed requests stand for those that came in."""

    late_at_least: Share | None = None
    """Share of the requests that took longer than `targets.latency`."""

    late_at_most: Share | None = None
    """The same, where the server's histogram has no edge at the limit. Absent where it has."""

    tokens: TokenStatus | None = None
    """What it makes, of a server that makes tokens."""

    peak: Figure | None = None
    """Requests a second that the replicas are for: the most of the last week around this time of day."""

    recorded_hours: Figure | None = None
    """Hours of the last week in which requests were counted."""

    week: str | None = None
    """The highest demand in each three hours of the last week, as bars; a dot where nothing is known."""

    servable_at_least: Figure | None = None
    """Requests a second that a replica takes with the limit kept, at the peak, with a probability of 90%."""

    servable_at_most: Figure | None = None
    """The same, with a probability of 10%."""

    needed: int | None = None
    """Replicas that the peak takes, whatever `replicas.max` allows."""

    sides: Annotated[tuple[PlaceSize, ...], Field(max_length=MAX_SIDES, exclude_if=not_)] = ()
    """What it would be in each pool, here included: those where it takes the fewest hours."""


@value_object
class Recommendation(Record):
    """What the operator would do, or is about to do."""

    id: str
    """Decision id, to be named in the annotation rightpool.dev/approve."""

    action: Annotated[Action, WORD]
    """Start, Move, Resize or Update."""

    placement: Placement
    """Where to."""

    reason: str
    """What it would bring, in one CamelCase word."""

    cost_per_hour: Quantity | None = None
    """Dollars an hour there."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What throughput counts: Samples or Steps. Absent: Samples."""

    throughput: Estimate | None = None
    """Predicted throughput there, units a second."""

    savings: Share | None = None
    """Share of the cost for the same work that is saved."""

    held_by: str | None = None
    """Why it is only a recommendation, in one CamelCase word. Absent: it is about to be carried out."""

    message: str = ""
    """The evidence in numbers."""

    @property
    def approvable(self) -> bool:
        """Whether an approval would have it carried out. What else holds it back no approval ends."""
        return self.held_by in (None, Reason.AWAITING_APPROVAL, Reason.POLICY_RECOMMEND_ONLY)


@value_object
class ProfiledJobStatus(Record):
    """What the operator knows and does."""

    observed_generation: int | None = None
    """The metadata.generation that was looked at."""

    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=MAX_CONDITIONS, json_schema_extra=LIST_OF_CONDITIONS)
    ] = ()
    """Placed, Profiled, Efficient, CostEfficient, TargetsMet, Migrating, Verified, Degraded, Completed, Failed."""

    replicas: int = 0
    """Pods that run, for the scale subresource."""

    selector: str = ""
    """Label selector of the pods, for the scale subresource."""

    state: Annotated[JobState, INLINE] = field(default_factory=JobState)
    """What the operator goes on from."""

    profile: ProfileStatus | None = None
    """What the job does to its chips."""

    outlook: OutlookStatus | None = None
    """The rest of the job."""

    summary: ColumnsStatus | None = None
    """What the columns of `kubectl get` show."""

    recommendation: Recommendation | None = None
    """What the operator would do, or is about to do."""

    server: ServerStatus | None = None
    """What a server answers."""

    working_memory: str | None = None
    """What the operator goes on from beside the above, as JSON: how the rate varies, what was done, and what it would
    have cost without moves. `rightpool explain` and `rightpool history` tell what of it people ask for."""

    @property
    def measured(self) -> ProfileStatus | None:
        """The profile where it says what the job does now; None while a job warms up, stands still or is not heard."""
        return measured_now(self.conditions, self.profile)


def measured_now(conditions: Iterable[Condition], profile: ProfileStatus | None) -> ProfileStatus | None:
    """A profile where the conditions beside it say that it is what the job does now."""
    profiled = find_condition(conditions, ConditionType.PROFILED)
    heard = profiled is not None and (profiled.status == "True" or profiled.reason == Reason.EXPORTERS_ALONE)
    return profile if heard else None
