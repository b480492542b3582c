"""A migration: the persisted state of carrying out one decision."""

from __future__ import annotations

from enum import StrEnum
from operator import not_
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.estimate import Estimate
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.model import ATOMIC
from rightpool.api.program_edit import ProgramEdit
from rightpool.api.record import PACKED, Record
from rightpool.api.revision import Revision
from rightpool.api.units import NO_MONEY, WORD, Count, Dollars, Figure, Quantity, UnixTime, UnixTimeUp, write_money
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit, counts_samples


def _whole(share: float) -> bool:
    return share == 1.0


def _is_zero(value: float) -> bool:
    return write_money(value) == NO_MONEY


MAX_BASELINE_RATES: Final = 12


class Phase(StrEnum):
    """Where a migration stands. Each is persisted before anything that belongs to it is done."""

    PLANNED = "Planned"  # written down; waits for approval where that is required
    CHECKPOINTING = "Checkpointing"  # a save was asked for; the old Revision runs on
    DRAINING = "Draining"  # the old Revision is being ended; nothing new is created. By group: the object is changed
    STARTING = "Starting"  # the old Revision is gone, by group: goes; the new one is created and must come up
    SURGING = "Surging"  # of a server: the new Revision comes up beside the old one, which goes on answering
    SHARING = "Sharing"  # of a server: requests come to both Revisions, more and more of them to the new one
    HOLDING = "Holding"  # of a server: all requests come to the new Revision; the old one runs on, to go back to
    WARMING_UP = "WarmingUp"  # all pods run; the Profile is not steady yet
    VERIFYING = "Verifying"  # a full window on the new Revision is being measured


@value_object
class BatchPromise(Record):
    """What the batches of a server were to take where it goes."""

    fixed: Quantity
    """Seconds that any batch takes."""

    each: Quantity
    """Seconds that one more request of it adds."""

    spare: Quantity
    """Times as long as that which they may take until the limit is not kept any more."""


@value_object
class Migration(Record):
    """A decision that is being carried out. Written before each step, so that it can be continued after a crash.

    Rolling back goes through the same phases, to the placement of `from` as a Revision of its own.
    """

    id: str
    """Decision id."""

    action: Annotated[Action, WORD]
    """Start, Move, Resize or Update."""

    phase: Annotated[Phase, WORD]
    """Planned, Checkpointing, Draining, Starting, WarmingUp or Verifying; of a server Planned, Surging, Sharing or
    Holding."""

    source: Annotated[Revision, Field(alias="from")]
    """The Revision before."""

    target: Annotated[Revision, Field(alias="to")]
    """The Revision that is being created; while rolling back with the placement of `from`."""

    created_at: Annotated[UnixTime, Field(alias="startedAt")]
    """When the decision was taken."""

    phase_since: Annotated[UnixTime, Field(alias="phaseStartedAt")]
    """When this phase began."""

    reason: Annotated[Reason, WORD]
    """Why, in one CamelCase word."""

    message: Annotated[str, Field(exclude_if=not_)] = ""
    """What is being waited for. Absent while rolling back: see failureMessage."""

    up: Annotated[Count, Field(exclude_if=not_)] = 0
    """Of a server: replicas of `to` that are to be there by now, while requests come to both; of groups that go one
    after the other: pods that have started at `to`. Absent: all, or none."""

    share: Annotated[Count, Field(exclude_if=not_)] = 0
    """Of a server behind an HTTPRoute: percent of the requests that come to `to` while they come to both. Absent: its
    replicas get as many as others."""

    batches: BatchPromise | None = None
    """Of a server: what its batches were to take there. Absent: nothing was predicted."""

    edit: Annotated[ProgramEdit | None, PACKED] = None
    """Of an edit of a server: what that did before it began. Absent: too little was measured."""

    unit: Annotated[WorkUnit, WORD, Field(exclude_if=counts_samples)] = WorkUnit.SAMPLES
    """What throughput counts: Samples or Steps; of a server Requests, of those that share its dollars. Absent:
    Samples."""

    predicted: Estimate | None = None
    """Predicted throughput, units a second. What it was derived from is kept until the old Revision is ended."""

    baseline: Quantity | None = None
    """Throughput before."""

    healthy_baseline: Quantity | None = None
    """Throughput before, had no fault throttled its chips, by prediction. Absent: none did."""

    baseline_windows: Annotated[Count, Field(exclude_if=not_)] = 0
    """Windows that the baseline is the mean of. Absent: one."""

    baseline_rates: Annotated[
        tuple[Quantity, ...], Field(max_length=MAX_BASELINE_RATES, exclude_if=not_, json_schema_extra=ATOMIC)
    ] = ()
    """Throughput of the newest of these windows, one after the other, the newest last. Absent: not known, or rolling
    back."""

    useful: Annotated[Quantity, Field(exclude_if=_whole)] = 1.0
    """Share of the time that interruptions leave at the target ÷ that at the source, as it was known at the decision.
    Absent: 1."""

    last_rate: Quantity | None = None
    """Throughput right before the save was asked for, of a time that no window has in it: from a fifth to two fifths of
    one. Absent: too short, not measured, or among baselineRates by now."""

    without_return: Annotated[Reason | None, WORD] = None
    """Why the chips that it leaves are not held until the verdict, in one CamelCase word. Absent: they are."""

    rolling_back: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether the old placement is being restored. Absent: no."""

    abandoned: Revision | None = None
    """While rolling back: the Revision that did not deliver."""

    saved_before: Annotated[UnixTimeUp | None, Field(alias="checkpointBefore")] = None
    """The last save that was known when the save was asked for."""

    saved_at: Annotated[UnixTime | None, Field(alias="checkpointAt")] = None
    """The save that the new Revision starts from."""

    unsaved: Annotated[Reason | None, WORD] = None
    """Why it leaves without the save that was asked for: SaveFailed or CheckpointTimeout. Absent: it does not."""

    stopped_at: UnixTime | None = None
    """When the Revision that is left was gone."""

    running_at: UnixTime | None = None
    """When every pod of the new Revision ran."""

    left: Counterfactual | None = None
    """Where the job would be without its moves, as of before this one."""

    lost_seconds: Annotated[Quantity, Field(exclude_if=not_)] = 0.0
    """Time without progress, seconds, over both ways, as far as it is over. Absent: none is."""

    cost: Annotated[Dollars, Field(exclude_if=_is_zero)] = 0.0
    """Dollars paid in that time."""

    realised: Quantity | None = None
    """Throughput on the new placement."""

    source_work: Annotated[Figure | None, Field(alias="fromWork")] = None
    """Share of the step that was work on the chips before, 0-1; the rest was waiting. Absent: no counter told."""

    target_work: Annotated[Figure | None, Field(alias="toWork")] = None
    """The same on the new placement."""

    throttled: Annotated[bool, Field(exclude_if=not_)] = False
    """Whether a fault throttled the chips of the new placement when realised was measured. Absent: no."""

    doubt: Quantity | None = None
    """Standard deviation of the logarithm of realised ÷ baseline, by how windows of this job differ."""

    failure: Annotated[Reason | None, WORD] = None
    """While rolling back, and of an edit that does not start: why, in one CamelCase word."""

    failure_message: str | None = None
    """The same in numbers."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.rolling_back and self.abandoned is None:
            raise ValueError("abandoned is missing, and rollingBack is true")
        return self

    @property
    def baseline_cost(self) -> float | None:
        """Dollars for a million units before."""
        return measured_cost_per_million(self.baseline, self.source.cost_per_hour)

    @property
    def given_up(self) -> bool:
        """Whether an edit of a server has not started and holds no chips any more: it waits for the next one."""
        return self.failure is not None and not self.rolling_back

    @property
    def promises(self) -> bool:
        """Whether it promised anything: what did not is not verified, and has nowhere to go back to."""
        return self.action not in (Action.UPDATE, Action.START)

    @property
    def returns(self) -> bool:
        """Whether it has left, and may have to go back."""
        left = self.phase not in (Phase.PLANNED, Phase.CHECKPOINTING)
        return self.promises and not self.rolling_back and left

    @property
    def demanded(self) -> bool:
        """Whether the user asked for it, by an edit or for a start: limits of the operator's own moves do not hold it
        back."""
        before, after = self.source.generation, (self.abandoned or self.target).generation
        left = self.reason is Reason.PLACEMENT_DISALLOWED and before is not None and before != after
        return not self.promises or left

    @property
    def moving(self) -> Revision:
        """The Revision that is being left in the phases up to Draining."""
        if self.rolling_back:
            assert self.abandoned is not None
            return self.abandoned
        return self.source
