"""Setbacks: why a migration did not get where it was to. reporting/migration_texts.py says them in words."""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit


@dataclass(frozen=True, slots=True)
class NotRunning:
    """Not all pods of a Revision run when they should."""

    deadline: float
    """Seconds that the policy gives a start."""

    cause: str | None
    """Why, by its pods; None where they do not say."""

    queue: str | None
    """The queue that has not admitted it; None where it waits for none."""

    no_room: str | None = None
    """The pool where it came from, which has no room for it any more. None: it has, or nothing is to go back."""

    returning: bool = False
    """Whether it is the way back that fails."""


@dataclass(frozen=True, slots=True)
class NeverStarted:
    """The job is started elsewhere, since its pods never all ran."""

    cause: str | None
    """Why, by its pods; None where they do not say."""


@dataclass(frozen=True, slots=True)
class ProgramFailed:
    """The target has failed for good."""

    failure: str | None
    """Kubernetes' words; None where it has none."""


@dataclass(frozen=True, slots=True)
class GangDisrupted:
    """Pods have failed because Kubernetes ended another one of the gang."""

    revision: int
    """Number of the one that has failed."""

    at: float
    """Unix seconds when Kubernetes began to end that pod."""


@dataclass(frozen=True, slots=True)
class ChipsTaken:
    """Others have got the chips of the target while the save was waited for."""

    target: Placement
    """Where it was to go."""
    waited: float
    """Seconds that the save was waited for."""


@dataclass(frozen=True, slots=True)
class FailedWhenSaving:
    """The job has failed while its save was waited for."""


@dataclass(frozen=True, slots=True)
class EndUnknown:
    """Pods have ended, and Kubernetes does not say whether they have completed the job."""

    revision: int
    """Number of the one whose pods have ended."""


@dataclass(frozen=True, slots=True)
class StoppedByQueue:
    """The target was preempted for so long that no verdict was found."""

    queue: str | None
    """Name of the LocalQueue; None where the job is in none."""


@dataclass(frozen=True, slots=True)
class NothingProven:
    """The target was not measured in time."""

    limit: float
    """Seconds that were waited."""

    unit: WorkUnit | None
    """What throughput is missing in, where it was measured in another unit. None: no profile was complete."""


@dataclass(frozen=True, slots=True)
class NoStep:
    """The program does not work on the target, though its pods run and are read."""

    limit: float
    """Seconds that were waited."""
    after_first: bool = False
    """Whether it had made a few steps before."""


Setback = (
    NotRunning
    | NeverStarted
    | ProgramFailed
    | GangDisrupted
    | ChipsTaken
    | FailedWhenSaving
    | EndUnknown
    | StoppedByQueue
    | NothingProven
    | NoStep
)
