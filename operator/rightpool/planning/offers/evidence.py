"""Evidence: the parameters of a decision. A limit makes its own sentence, reporting/decision_texts.py that of the rest.

What the job or the candidates tell by themselves is not repeated here.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Final

from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.api.wording import dollars, how_many, instant, share, span
from rightpool.planning.offers.rejection import Gap

RESTART_SHARE: Final = 0.05
"""Of the time of a job that lets the fleet move it: what restarts may take."""


@value_object
class Failure:
    """The operator itself failed on the job."""

    error: str
    """The exception, for a report."""


@value_object
class NoPoolFits:
    """No pool can take the job."""

    known: tuple[str, ...]
    """All pools there are, by name."""


@value_object
class PoolGone:
    """The pool of the current Revision can't be used."""

    pool: str
    """Name that the Revision's placement has."""

    problem: str | None
    """Why, as its conditions say; None where there is no such pool any more."""
    runs: bool
    """Whether the Revision has a child all the same."""
    no_pool_fits: NoPoolFits | None = None
    """Set where the job is to be started elsewhere, and can't."""


@value_object
class Restart:
    """The job does not start where it was placed."""

    here: Placement
    """Where it was placed."""
    obstacle: str | None
    """Why, by its pods; None where they do not say."""


@value_object
class Gathering:
    """Nodes are kept free for the job, which has waited for long, until its placement fits."""

    placement: Placement
    """What it waits for."""


@value_object
class SourceNotHeld:
    """A move without return: others wait for the chips that it leaves, and holding them costs more than a way back is
    worth."""

    waiting: int
    """Jobs that wait for those chips."""
    cost: float
    """Dollars, of holding them until the verdict."""
    worth: float
    """Dollars that a way back saves, by how likely it is to be needed."""
    seconds: float
    """Until the verdict is expected."""


@value_object
class FleetGain:
    """A move that the plan of the fleet makes."""

    own: float
    """Dollars an hour that the job itself gains, its restart paid; below 0 where it gives way."""


@value_object
class Bill:
    """What a move brings and costs, time at its value included."""

    gain: float
    """Dollars, over the horizon."""
    cost: float
    """Dollars, of the restart."""
    restart: float
    """Seconds of work that it costs: the pause, and what is missing while the job starts slowly."""
    horizon: float
    """Seconds that the gain is counted for."""
    fades: bool = False
    """Whether it is less than the saving of now, since prices there, or where the job is, do not last for so long."""
    beside: bool = False
    """Whether nothing is stopped, and the cost is that of both sides while requests are shared."""


@value_object
class Limit(ABC):
    """What holds a move back that pays by the numbers."""

    reason: ClassVar[Reason]

    @abstractmethod
    def text(self, now: float) -> str:
        """A sentence that holds as long as the limit does. now: Unix seconds."""


@value_object
class TooManyAtOnce(Limit):
    """As many jobs are being moved as the policy allows at once."""

    reason = Reason.MIGRATION_LIMIT_REACHED
    under_way: int
    """Jobs that are being moved now."""
    of_namespace: bool = False
    """Whether these are of the job's own namespace, as many as are not kept for others."""

    def text(self, now: float) -> str:
        are = "job is" if self.under_way == 1 else "jobs are"
        if self.of_namespace:
            own = "job of the namespace is" if self.under_way == 1 else "jobs of the namespace are"
            return f"{self.under_way} {own} being moved; the rest of maxConcurrentMigrations is for other namespaces"
        return f"{self.under_way} {are} being moved, as many as the policy's maxConcurrentMigrations allows"


@value_object
class TooManyAnHour(Limit):
    """As many moves have begun as the policy allows in an hour."""

    reason = Reason.MOVE_RATE_LIMIT_REACHED
    moves: int
    """Those of the last hour, without what users demanded."""

    def text(self, now: float) -> str:
        return f"{how_many(self.moves, 'move')} began in the last hour, as many as the policy's maxMovesPerHour allows"


@value_object
class BreakerOpen(Limit):
    """Too many of the fleet's last moves were undone."""

    reason = Reason.CIRCUIT_BREAKER_OPEN
    undone: int
    """Moves of `judged`."""
    judged: int
    """The last moves that have a verdict."""
    allowed: float
    """Share of them, 0 to 1, that the policy lets be undone."""
    next_trial: float
    """Unix seconds from which one job may try again."""

    def text(self, now: float) -> str:
        return (
            f"{self.undone} of the last {how_many(self.judged, 'move')} had to be undone, more than the policy's "
            f"circuitBreaker.maxRolledBackShare {share(self.allowed)}; {_trial(self.next_trial, now)}"
        )


@value_object
class Suspected(Limit):
    """Too many of the last moves to a pool, or to a chip, were undone."""

    reason = Reason.POOL_SUSPECTED
    pool: str
    """Name of the AcceleratorPool."""
    chip: str | None
    """The catalog's key, where moves to all pools of the chip were counted; else None."""
    own: bool
    """Whether moves of this tenant alone were counted."""
    undone: int
    """Moves of `judged`."""
    judged: int
    """The last moves there that have a verdict."""
    next_trial: float
    """Unix seconds from which one job may try it."""

    def text(self, now: float) -> str:
        where = self.pool if self.chip is None else f"pools of {self.chip}"
        whose = " of this namespace" if self.own else ""
        return (
            f"{self.undone} of the last {how_many(self.judged, 'move')}{whose} to {where} had to be undone; "
            f"{_trial(self.next_trial, now)}"
        )


@value_object
class Unproven(Limit):
    """No move of a job of its size to the pool has delivered yet, and as many as may try that are under way."""

    reason = Reason.POOL_UNPROVEN
    pool: str
    """Name of the AcceleratorPool."""

    def text(self, now: float) -> str:
        return (
            f"no job of this size has moved to {self.pool} with success yet. The first moves are under way, and other "
            "jobs wait for their verdict"
        )


@value_object
class Doubling(Limit):
    """Moves to the pool are under way, and jobs may slow each other there: more would double its use, or it is known
    that they do."""

    reason = Reason.POOL_UNPROVEN
    pool: str
    """Name of the AcceleratorPool."""
    coming: int
    """Chips of the jobs that are under way, or wait there for their verdict."""
    in_use: int
    """Chips that were in use there before."""

    def text(self, now: float) -> str:
        return (
            f"jobs of {how_many(self.coming, 'chip')} are going to {self.pool}, where {self.in_use} were in use; "
            "others wait for their verdict, since jobs there may slow each other"
        )


@value_object
class Outbid(Limit):
    """Other jobs gain more from the chips."""

    reason = Reason.OUTBID
    pool: str
    """Name of the AcceleratorPool whose chips they are."""
    chips: int = 0
    """How many the job would take that it does not have; 0 where the rest is not known."""
    worth: float = 0.0
    """Dollars an hour that they are worth to others, beyond their price; less what those that it would leave are."""
    own: float = 0.0
    """Dollars an hour that the job would gain by them, a restart paid."""

    def text(self, now: float) -> str:
        gain = f"other jobs gain more from the chips of {self.pool}"
        if not self.chips:
            return gain
        more = "one is" if self.chips == 1 else f"{self.chips} are"
        return (
            f"{gain}: {more} worth {dollars(self.worth)} an hour or more to them, and {dollars(self.own)} to this job"
        )


@value_object
class ComingFree(Limit):
    """The chips are the job's by the plan of the fleet, and others have to leave them first."""

    reason = Reason.WAITING_FOR_CAPACITY
    pool: str
    """Name of the AcceleratorPool whose chips they are."""
    chips: int
    """How many are about to be left there."""
    jobs: int
    """Jobs that leave them."""
    own: str | None
    """Name of one of them, of the job's own namespace: those of others are not for its user to read."""

    def text(self, now: float) -> str:
        who, others = self.own or "another job", self.jobs - 1
        are = f" and {how_many(others, 'more job')} are" if others else " is"
        return f"{who}{are} giving up {how_many(self.chips, 'chip')} of {self.pool}"


@value_object
class RestartsOften(Limit):
    """Restarts of a job that lets the fleet move it have taken as much of its time as they may."""

    reason = Reason.RESTARTS_OFTEN
    times: int
    """Moves of it, without those that the user demanded."""
    seconds: float
    """What they took, and the next one would, without the first two."""
    next_at: float
    """Unix seconds from when on that is a small enough share."""

    def text(self, now: float) -> str:
        return (
            f"{how_many(self.times, 'move')} and one more, but for two, take {span(self.seconds)} of restarts, "
            f"above {share(RESTART_SHARE)} of the job's time until {instant(self.next_at)}"
        )


@value_object
class SaveMissing(Limit):
    """No save came when one was asked for."""

    reason = Reason.CHECKPOINT_TIMEOUT
    attempts: int
    """How often in a row."""
    next_at: float
    """Unix seconds when one is asked for again."""
    late: float | None = None
    """Seconds from when the last one was given up until one was complete; None where none was soon."""

    def text(self, now: float) -> str:
        times = _in_a_row(self.attempts)
        again = f"it is asked for again at {instant(self.next_at)}"
        if self.late is None:
            return f"no save came when one was asked for, {times}; {again}"
        late = f"the save came {span(self.late)} too late, {times}"
        return f"{late}; {again}: set checkpoint.timeout to more if saves take so long"


@value_object
class SaveFailed(Limit):
    """The program failed when it was asked to save."""

    reason = Reason.SAVE_FAILED
    attempts: int
    """How often in a row."""
    next_at: float
    """Unix seconds when it is asked again."""

    def text(self, now: float) -> str:
        times = _in_a_row(self.attempts)
        return (
            f"the program failed when it was asked to save, {times}; it is asked again at {instant(self.next_at)}, or "
            "after an edit of the spec"
        )


@value_object
class MovedOften(Limit):
    """The job was moved as often as its spec allows."""

    reason = Reason.MOVE_LIMIT_REACHED
    moves: int
    """In its life, without those that the user demanded, and those for a target that was missed."""
    most: int
    """adaptation.maxMoves."""

    def text(self, now: float) -> str:
        return f"the job has been moved {how_many(self.moves, 'time')}, and adaptation.maxMoves is {self.most}"


@value_object
class CoolingDown(Limit):
    """The last move of the job ended a short time ago."""

    reason = Reason.COOLING_DOWN
    since: float
    """Unix seconds of its end."""
    cooldown: float
    """Seconds from then on."""

    def text(self, now: float) -> str:
        return f"the last move ended at {instant(self.since)}, adaptation.cooldown is {span(self.cooldown)}"


@value_object
class RunsShortly(Limit):
    """The job runs here for a short time."""

    reason = Reason.MINIMUM_RUN_TIME
    since: float
    """Unix seconds since when."""
    shortest: float
    """Seconds that the policy has it run."""

    def text(self, now: float) -> str:
        return f"the job has run here since {instant(self.since)}, the policy's minRunTime is {span(self.shortest)}"


@value_object
class FewWindows(Limit):
    """More windows have to be measured first.

    Nothing changes from window to window, so that no status is written for that.
    """

    reason = Reason.MORE_WINDOWS_NEEDED
    since: float
    """Unix seconds since when the job runs here."""
    wanted: int
    """Windows, counted from then on."""
    window: float
    """Seconds of each."""
    for_deadline: bool = False
    """Whether it waits because a deadline leaves time for them, and not because its saving is small."""

    def text(self, now: float) -> str:
        windows = f"{how_many(self.wanted, 'window')} of {span(self.window)}"
        few = f"the job runs here since {instant(self.since)}, and is measured for {windows} first"
        return f"{few}: {'the deadline leaves time for them' if self.for_deadline else 'the saving is small'}"


Evidence = Gap | Failure | NoPoolFits | PoolGone | Restart | Gathering | SourceNotHeld | FleetGain | Bill


def _trial(at: float, now: float) -> str:
    """When one job may try where others failed."""
    return f"one job may try it from {instant(at)} on" if at > now else "one job is trying it"


def _in_a_row(attempts: int) -> str:
    return "once" if attempts == 1 else f"{attempts} times in a row"
