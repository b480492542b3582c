"""Evidence: the parameters of a decision, of which reporting/decision_texts.py makes a sentence.

What the job or the candidates tell by themselves is not repeated here.
"""

from dataclasses import dataclass
from typing import ClassVar

from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.planning.evaluate.rejection import Gap


@dataclass(frozen=True, slots=True)
class Failure:
    """The operator itself failed on the job. error: the exception, for a report."""

    error: str


@dataclass(frozen=True, slots=True)
class NoPoolFits:
    """No pool can take the job. known: all pools there are, by name."""

    known: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolGone:
    """The pool of the current Revision can't be used. problem: why; runs: whether the Revision is there.

    no_pool_fits: set where the job is to be started elsewhere, and can't.
    """

    problem: str
    runs: bool
    no_pool_fits: NoPoolFits | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """The job does not start where it was placed. obstacle: why, as far as it is known."""

    here: Placement
    obstacle: str | None


@dataclass(frozen=True, slots=True)
class Gathering:
    """Nodes are kept free for the job, which has waited for long, until its placement fits."""

    placement: Placement


@dataclass(frozen=True, slots=True)
class SourceNotHeld:
    """A move without return: others wait for the chips that it leaves, and holding them costs more than a way back is
    worth. Dollars of both; seconds until the verdict is expected."""

    waiting: int
    cost: float
    worth: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Bill:
    """Dollars that a move brings over the horizon and costs, time at its value included. Seconds of both."""

    gain: float
    cost: float
    restart: float
    horizon: float


@dataclass(frozen=True, slots=True)
class Limit:
    """What holds a move back that pays by the numbers."""

    reason: ClassVar[Reason]


@dataclass(frozen=True, slots=True)
class TooManyAtOnce(Limit):
    """Jobs that are being moved now."""

    reason = Reason.MIGRATION_LIMIT_REACHED
    under_way: int


@dataclass(frozen=True, slots=True)
class TooManyAnHour(Limit):
    """Moves that began in the last hour."""

    reason = Reason.MOVE_RATE_LIMIT_REACHED
    moves: int


@dataclass(frozen=True, slots=True)
class BreakerOpen(Limit):
    """Of the fleet's last `judged` moves `undone` were undone. next_trial: Unix seconds from which one may try."""

    reason = Reason.CIRCUIT_BREAKER_OPEN
    undone: int
    judged: int
    allowed: float
    next_trial: float


@dataclass(frozen=True, slots=True)
class Suspected(Limit):
    """Of the last `judged` moves to a pool `undone` were undone: of this tenant's where `own`, and of all pools with
    its chip where that is set. next_trial: Unix seconds from which one job may try it."""

    reason = Reason.POOL_SUSPECTED
    pool: str
    chip: str | None
    own: bool
    undone: int
    judged: int
    next_trial: float


@dataclass(frozen=True, slots=True)
class Unproven(Limit):
    """No move of a job of its size to the pool has delivered yet, and as many as may try that are under way."""

    reason = Reason.POOL_UNPROVEN
    pool: str


@dataclass(frozen=True, slots=True)
class SaveMissing(Limit):
    """No save came `attempts` times in a row, and the next one is asked for at `next_at`, Unix seconds."""

    reason = Reason.CHECKPOINT_TIMEOUT
    attempts: int
    next_at: float


@dataclass(frozen=True, slots=True)
class SaveFailed(Limit):
    """The program failed `attempts` times when it was asked to save, and is asked again at `next_at`, Unix seconds."""

    reason = Reason.SAVE_FAILED
    attempts: int
    next_at: float


@dataclass(frozen=True, slots=True)
class MovedOften(Limit):
    """Moves of this job in its life."""

    reason = Reason.MOVE_LIMIT_REACHED
    moves: int
    most: int


@dataclass(frozen=True, slots=True)
class CoolingDown(Limit):
    """Unix seconds of the last move's end; seconds of the cooldown."""

    reason = Reason.COOLING_DOWN
    since: float
    cooldown: float


@dataclass(frozen=True, slots=True)
class RunsShortly(Limit):
    """Unix seconds since when the job runs here; seconds that it has to."""

    reason = Reason.MINIMUM_RUN_TIME
    since: float
    shortest: float


@dataclass(frozen=True, slots=True)
class FewWindows(Limit):
    """Unix seconds since when the job runs here; windows that are to be measured first, and their seconds.

    for_deadline: whether it waits because a deadline leaves time, and not because its saving is small. Nothing changes
    from window to window, so that no status is written for that.
    """

    reason = Reason.MORE_WINDOWS_NEEDED
    since: float
    wanted: int
    window: float
    for_deadline: bool = False


Evidence = Gap | Failure | NoPoolFits | PoolGone | Restart | Gathering | SourceNotHeld | Bill
