"""What a condition is made from besides the job, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from rightpool.api.conditions import Reason
from rightpool.api.value_object import value_object
from rightpool.api.wording import sentence
from rightpool.hardware.accelerator import Price
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.assessment import Assessment
from rightpool.profiles.profile import Profile

Truth = Literal["True", "False", "Unknown"]
UNDER_WAY: Final = frozenset({Reason.MOVING, Reason.RESIZING, Reason.UPDATING, Reason.ROLLING_BACK})
"""Reasons of a decision that is being carried out."""


@value_object
class Context:
    """What a job's conditions depend on besides the job."""

    assessment: Assessment | None
    """None where the job was not planned for."""

    price: Price | None
    """Of the current Revision's pool; None where that pool is unknown."""

    telemetry: bool
    """Whether measurements could be read at all."""

    now: float
    """Unix seconds."""

    problem: str | None = None
    """What went wrong in the operator itself with this job."""

    recovering: bool = False
    """Whether the operator was started anew and has not measured the job again yet."""

    uncalibrated: str | None = None
    """That figures of the chips are estimated, and the remedy; None where they are not."""


@value_object
class Statement:
    """A condition without its type and times."""

    status: Truth
    """True, False or Unknown."""
    reason: str
    """One of api.conditions.Reason, or an InjectionNote."""
    message: str | Callable[[], str] = ""
    """The evidence in numbers, and what can be done; empty where the reason says all. What takes long to say is said
    when it is asked for: of most statuses the reasons alone are compared."""

    def text(self) -> str:
        """The message."""
        return self.message if isinstance(self.message, str) else self.message()


def runs(job: Job) -> bool:
    """Whether a pod of the current Revision runs."""
    return job.child is not None and job.state.finished is None and job.child.running > 0


def complete_profile(job: Job) -> Profile | None:
    """The profile to decide by; None where there is none."""
    profile = job.observed.profile
    return profile if profile is not None and profile.complete and runs(job) else None


def operator_failed(problem: str) -> str:
    """A defect of the operator, for the user."""
    text = f"a defect of the operator: {problem}; what runs is left as it is"
    return sentence(text, remedy="report it with the ProfiledJob and the operator's log")
