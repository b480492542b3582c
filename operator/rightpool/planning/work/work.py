"""Work: what a kind of workload is there for, and all that planning asks of it.

A job that trains has an amount of work, is done with it, and is measured by how fast that goes. Whatever never ends, or
is measured by something else, answers the same questions in a module of its own, as training.py does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto
from typing import ClassVar, NamedTuple

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.variation import Variation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.series import RateSeries
from rightpool.profiles.profile import Profile


class Extent(NamedTuple):
    """How much there is to do, in units of work."""

    done: float
    """So far."""
    whole: float
    """All of it."""

    @property
    def left(self) -> float:
        """Still to be done."""
        return max(self.whole - self.done, 0.0)


class Activity(Enum):
    """What a program that worked before shows on the target while no window of it is complete."""

    UNSEEN = auto()  # not all pods are read, or nobody knows whether it would be seen to work
    NO_STEP = auto()
    FIRST_STEPS = auto()  # too few for a window to be complete, and none in the newest one: it may make one in an hour
    WORKING = auto()


class Work(ABC):
    """What one kind of workload does."""

    one_writer: ClassVar[bool] = True
    """Whether two Revisions must never run at once, since both would write to the same checkpoint."""

    scales: ClassVar[bool] = False
    """Whether the number of its pods changes without a new Revision."""

    profiled: ClassVar[bool] = True
    """Whether a Profile says what it would do elsewhere."""

    @abstractmethod
    def does(self, spec: ProfiledJobSpec) -> bool:
        """Whether this is what such a job does."""

    # --- what there is to do -----------------------------------------------------------------------------------------

    @abstractmethod
    def extent(self, job: Job, now: float) -> Extent | None:
        """How much there is to do; None where nobody says, or there is no end of it."""

    def size(self, job: Job, now: float) -> int | None:
        """How many pods its Revision is to have now, where that changes without a new one; None where it does not."""
        return None

    def unplanned(self, job: Job) -> Reason | None:
        """Why it stays where it is whatever a Profile says; None where measurements decide."""
        return None

    @abstractmethod
    def has_ended(self, child: RevisionState) -> bool:
        """Whether the job is over and did well, by the child of its current Revision."""

    @abstractmethod
    def demand(self, job: Job) -> float:
        """Units of work a second that are worth anything; infinitely many where faster is always better."""

    @abstractmethod
    def lacking(self, job: Job, profile: Profile) -> Reason | None:
        """Why a steady Profile of all its pods says too little to decide by; None where it says enough."""

    # --- what a stop costs -------------------------------------------------------------------------------------------

    @abstractmethod
    def saving(self, spec: ProfiledJobSpec) -> CheckpointMode:
        """How it saves before it is stopped. None: nothing is waited for."""

    @abstractmethod
    def loses_all(self, spec: ProfiledJobSpec) -> bool:
        """Whether a stop loses all that it has done, so that nothing but its user's will makes it move."""

    @abstractmethod
    def pause_seconds(self, job: Job) -> float:
        """Seconds without any progress that moving it costs, one way."""

    @abstractmethod
    def restart_seconds(self, job: Job) -> float:
        """Seconds of work that moving it costs: the pause, and what is missing while it starts slowly."""

    # --- what a move has brought -------------------------------------------------------------------------------------

    @abstractmethod
    def measured(
        self, migration: Migration, profile: Profile, variation: Variation | None, window: float
    ) -> RateSeries | None:
        """What it does on the target, as the verdict compares it with what was before; None where the Profile does not
        say. window: seconds."""

    @abstractmethod
    def activity(self, migration: Migration, profile: Profile | None) -> Activity:
        """What it shows on the target by its newest readings."""
