"""The fleet in one cycle: everything that a plan depends on, nothing else, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rightpool.api.outcome import MoveOutcome
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import Job, JobKey


@dataclass(frozen=True, slots=True)
class Fleet:
    """All jobs and pools at one moment."""

    jobs: Mapping[JobKey, Job]
    """Jobs that have ended included: the fleet's limits look back on them."""

    pools: Mapping[str, Pool]
    """By name."""

    policy: PlacementPolicySpec
    """The fleet's policy."""

    now: float
    """Unix seconds."""

    telemetry: bool = True
    """Whether measurements could be read at all in this cycle."""

    outcomes: Mapping[str, tuple[MoveOutcome, ...]] = field(default_factory=dict)
    """How moves to each pool ended, as the pools have kept it."""

    deleted_moves: tuple[BookedMove, ...] = ()
    """What jobs that are gone have left in the books."""
