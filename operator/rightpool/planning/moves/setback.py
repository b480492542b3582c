"""Setbacks: why a migration did not get where it was to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rightpool.api.placement import Placement
from rightpool.api.wording import brief, instant, place, span
from rightpool.api.work_unit import WorkUnit

FAILED: Final = "the Revision failed"
"""Where Kubernetes has no words of its own."""
_UNKNOWN: Final = "no reason known"
_MANAGER: Final = 40  # characters


class Setback(ABC):
    """What came in the way of a migration."""

    @abstractmethod
    def text(self) -> str:
        """What happened, in a sentence that a status keeps."""


@dataclass(frozen=True, slots=True)
class NotRunning(Setback):
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

    def text(self) -> str:
        why = self.cause or _UNKNOWN
        if self.queue is not None:
            why = f"queue {self.queue} has not admitted it"
        text = f"not running after {span(self.deadline)}: {why}"
        if self.no_room is not None:
            text += f"; there is no room on {self.no_room}, where it came from"
        return f"on the way back: {text}" if self.returning else text


@dataclass(frozen=True, slots=True)
class StaysCold(Setback):
    """A server does not answer the requests that warm it up."""

    cause: str | None
    """How it does."""

    def text(self) -> str:
        return f"no request of users went there: {self.cause or _UNKNOWN}"


@dataclass(frozen=True, slots=True)
class StoppedAnswering(Setback):
    """No replica of a server answers where it is moved to, which did before."""

    cause: str | None
    """Why, by its pods; None where they do not say."""

    def text(self) -> str:
        return f"no replica there answers any more: {self.cause or _UNKNOWN}"


@dataclass(frozen=True, slots=True)
class NothingAnswered(Setback):
    """A server answers no request where it is moved to, though as many go there as elsewhere."""

    elsewhere: float
    """Requests that were answered where it is meanwhile."""

    def text(self) -> str:
        return (
            f"it answered no request there, and {self.elsewhere:.0f} where it is: see that it counts them there, and "
            "that clients do not keep their connections"
        )


@dataclass(frozen=True, slots=True)
class MetricsUnread(Setback):
    """Nothing shows how a server answers where it is moved to, though requests go there."""

    waited: float
    """Seconds for which it is so."""

    def text(self) -> str:
        return (
            f"requests went there, and no metrics of it were read for {span(self.waited)}: see that its pods have the "
            "same page there, and no NetworkPolicy is in the way"
        )


@dataclass(frozen=True, slots=True)
class NeverStarted(Setback):
    """The job is started elsewhere, since its pods never all ran."""

    cause: str | None
    """Why, by its pods; None where they do not say."""

    def text(self) -> str:
        return f"the job did not start there: {self.cause or _UNKNOWN}"


@dataclass(frozen=True, slots=True)
class ProgramFailed(Setback):
    """The target has failed for good."""

    failure: str | None
    """Kubernetes' words; None where it has none."""

    def text(self) -> str:
        return self.failure or FAILED


@dataclass(frozen=True, slots=True)
class GangDisrupted(Setback):
    """Pods have failed because Kubernetes ended another one of the gang."""

    revision: int
    """Number of the one that has failed."""

    at: float
    """Unix seconds when Kubernetes began to end that pod."""

    def text(self) -> str:
        return (
            f"Kubernetes took a pod of r{self.revision} away at {instant(self.at)}, and the others failed without it; "
            "all start again, and no failure counts"
        )


@dataclass(frozen=True, slots=True)
class ChipsTaken(Setback):
    """Others have got the chips of the target while the save was waited for."""

    target: Placement
    """Where it was to go."""
    waited: float
    """Seconds that the save was waited for."""

    def text(self) -> str:
        return (
            f"others got {place(self.target)} while its save was waited for ({span(self.waited)}): the job runs on, "
            "and goes when there is room and it saves in time"
        )


@dataclass(frozen=True, slots=True)
class FailedWhenSaving(Setback):
    """The job has failed while its save was waited for."""

    def text(self) -> str:
        return "the program failed after a save was asked for"


@dataclass(frozen=True, slots=True)
class EndUnknown(Setback):
    """Pods have ended, and Kubernetes does not say whether they have completed the job."""

    revision: int
    """Number of the one whose pods have ended."""

    def text(self) -> str:
        return f"the pods of r{self.revision} have ended, and Kubernetes does not say how; nothing is moved"


@dataclass(frozen=True, slots=True)
class StoppedByQueue(Setback):
    """The target was preempted for so long that no verdict was found."""

    queue: str | None
    """Name of the LocalQueue; None where the job is in none."""

    def text(self) -> str:
        return f"queue {self.queue} has stopped it, and a day was not enough for a verdict; the job stays"


@dataclass(frozen=True, slots=True)
class NothingProven(Setback):
    """The target was not measured in time."""

    limit: float
    """Seconds that were waited."""

    unit: WorkUnit | None
    """What throughput is missing in, where it was measured in another unit. None: no profile was complete."""

    def text(self) -> str:
        missing = "complete profile"
        if self.unit is not None:
            missing = f"throughput in {self.unit.plural}/s, as before the move,"
        return f"no {missing} within {span(self.limit)} after the move, so nothing can be proven; the job stays"


@dataclass(frozen=True, slots=True)
class NoStep(Setback):
    """The program does not work on the target, though its pods run and are read."""

    limit: float
    """Seconds that were waited."""
    after_first: bool = False
    """Whether it had made a few steps before."""

    def text(self) -> str:
        since = "after its first ones there" if self.after_first else "after the move"
        return f"no step within {span(self.limit)} {since}, though its pods run and are read"


class UserAct(StrEnum):
    """What its user has done to an adopted object while it was moved."""

    DELETED = "deleted"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    CHANGED = "changed"
    KEPT = "kept"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class TakenInHand(Setback):
    """The user of an adopted object has done something to it while it was moved."""

    act: UserAct
    """What."""

    by: str = ""
    """Who, by the field manager of the write; empty where that is not known."""

    def text(self) -> str:
        if self.act is UserAct.KEPT:
            return "adoption.change lets nothing be done to the object any more; it stays as it is"
        who = brief(self.by, _MANAGER) or "somebody else"
        return f"{who} has {self.act} the object while it was moved; it stays as it is"
