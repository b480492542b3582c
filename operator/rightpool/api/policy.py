"""What a platform team allows fleet-wide: the PlacementPolicy."""

from __future__ import annotations

from operator import not_
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.choices import AdaptationMode, FleetMode
from rightpool.api.conditions import LIST_OF_CONDITIONS, Condition
from rightpool.api.model import ATOMIC, ApiModel
from rightpool.api.quantities import Duration, Frequency, Money, Ratio, a_second_or_more

POLICY_NAME: Final = "default"
MAX_WORTHS: Final = 32


class CircuitBreaker(ApiModel):
    """Stops moves where too many of the last ones had to be rolled back: to a pool, to a chip, or all."""

    window: int = Field(default=10, ge=1, le=1000)
    """How many of the last moves are looked at."""

    max_rolled_back_share: Ratio = Field(default="0.5", validate_default=True)
    """Share of them that may have been rolled back. 1: the circuit breaker is off."""


class FleetPlanning(ApiModel):
    """How chips that several jobs want are shared out."""

    mode: FleetMode = FleetMode.OFF
    """Auto: to the starts and moves that are worth most together, also by chips of jobs that give way. Off: to one
    after another, starts first, then the move that saves most."""

    max_wait: Annotated[Duration, a_second_or_more("1h")] = Field(default="1h", validate_default=True)
    """How long a job without a place may be passed over for what others gain, with mode Auto. After that it comes
    before all that have not waited for so long."""


class TrialLimits(ApiModel):
    """What the trials of all jobs may use together."""

    max_cost_per_day: Money | None = None
    """Most dollars for the chips of trials in a day of UTC, of all jobs that exist. One that would cost more does not
    begin."""


class PlacementPolicySpec(ApiModel):
    """Fleet-wide safety. Without a policy these defaults hold."""

    default_adaptation_mode: AdaptationMode = AdaptationMode.RECOMMEND
    """What holds for jobs that do not set adaptation.mode."""

    max_concurrent_migrations: int | None = Field(default=None, ge=0, le=10_000)
    """Most migrations at the same time. 0: none. By default 10, or one for 50 jobs that have a place, if that is more.
    """

    max_moves_per_hour: int | None = Field(default=None, ge=0, le=100_000)
    """Most moves that are begun in an hour. 0: none. By default 60, or one for 10 jobs that have a place, if that is
    more."""

    min_run_time: Duration = Field(default="5m", validate_default=True)
    """Least time that a Revision runs before the job is moved again."""

    start_deadline: Annotated[Duration, a_second_or_more("10m")] = Field(default="10m", validate_default=True)
    """How long a new Revision may take until all its pods run. After that the job goes back to where it was; one that
    has never run is started elsewhere."""

    spot_interruptions_per_day: Frequency = Field(default="1", validate_default=True)
    """How often a day a job on spot capacity is taken to be interrupted, on pools that do not say it, until that was
    counted there."""

    circuit_breaker: CircuitBreaker = Field(default_factory=CircuitBreaker)
    """Stops moves where too many of the last ones had to be rolled back: to a pool, to a chip, or all."""

    fleet: FleetPlanning = Field(default_factory=FleetPlanning)
    """How chips that several jobs want are shared out."""

    trials: TrialLimits | None = None
    """What the trials of all jobs may use together. Absent: what each job allows for its own."""


class ChipWorth(ApiModel):
    """What chips of a pool are worth that several jobs want."""

    pool: str
    """AcceleratorPool."""

    per_chip_hour: Money
    """Dollars an hour that one more chip would be worth to the fleet, beyond its price."""


class PlacementPolicyStatus(ApiModel):
    """Whether the policy holds, and what holds the fleet back."""

    observed_generation: int | None = None
    """The metadata.generation that was looked at."""

    chips: Annotated[list[ChipWorth], Field(max_length=MAX_WORTHS, exclude_if=not_, json_schema_extra=ATOMIC)] = Field(
        default_factory=list
    )
    """Pools of which more chips are wanted than there are, the dearest first, with fleet.mode Auto."""

    conditions: list[Condition] = Field(default_factory=list, max_length=8, json_schema_extra=LIST_OF_CONDITIONS)
    """Ready, Trusted; Planning from the first plan of the fleet that failed."""
