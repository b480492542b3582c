"""What the state machine says where it is written down: why a migration was decided on, and what it delivered."""

from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.ledger import measured_cost_per_million
from rightpool.api.migration import Migration
from rightpool.api.pause import Pause
from rightpool.api.wording import brief, dollars, instant, number, place, span
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.verdict import Verdict
from rightpool.planning.judge.verification import Verification
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.moves.setback import (
    ChipsTaken,
    EndUnknown,
    FailedWhenSaving,
    GangDisrupted,
    NeverStarted,
    NoStep,
    NothingProven,
    NotRunning,
    ProgramFailed,
    Setback,
    StoppedByQueue,
)
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.targets.registry import target_of, yardstick_of
from rightpool.reporting.decision_texts import decision_text

# By how much what is believed differs from what was measured, where it is said.
LIKELY: Final = 0.02

_UNKNOWN: Final = "no reason known"
_FAILED: Final = "the Revision failed"

_DISALLOWED: Final = "where it was is not allowed any more"

_MEND_SAVE: Final = "see that spec.checkpoint.path has room, and that the program's saves work"


class MigrationTexts:
    """The words that the state machine writes down, as `planning.moves.words.Words`."""

    __slots__ = ()

    def decided(self, job: Job, assessment: Assessment, now: float) -> str:
        """Why a migration begins."""
        return decision_text(job, assessment, now)

    def unsaved(self, job: Job, migration: Migration, why: Reason, now: float, *, leaves: bool) -> str:
        """Why no save came, what is done again and what helps. leaves: whether the migration goes on without it."""
        goes_on = "the move goes on without it"
        if why is Reason.SAVE_FAILED:
            after = goes_on if leaves else "the move is given up, and the job stays where it is"
            return _failed_save(job, job.revision(migration.moving.revision), after, now)
        if not leaves:
            return f"{_no_save(job)}; the job runs on"
        # What hangs where it was moved to has done nothing there.
        again = "" if migration.rolling_back else f"; {_repeated(job, now)}"
        return f"{_no_save(job)}; {goes_on}{again}"

    def setback(self, setback: Setback) -> str:
        """Why a migration did not get where it was to."""
        match setback:
            case NotRunning():
                return _not_running(setback)
            case NeverStarted(cause):
                return f"the job did not start there: {cause or _UNKNOWN}"
            case ProgramFailed(failure):
                return failure or _FAILED
            case GangDisrupted(revision, at):
                return (
                    f"Kubernetes took a pod of r{revision} away at {instant(at)}, and the others failed without it; "
                    "all start again, and no failure counts"
                )
            case ChipsTaken(target, waited):
                return (
                    f"others got {place(target)} while its save was waited for ({span(waited)}): the job runs on, and "
                    "goes when there is room and it saves in time"
                )
            case FailedWhenSaving():
                return "the program failed after a save was asked for"
            case EndUnknown(revision):
                return f"the pods of r{revision} have ended, and Kubernetes does not say how; nothing is moved"
            case StoppedByQueue(queue):
                return f"queue {queue} has stopped it, and a day was not enough for a verdict; the job stays"
            case NoStep(limit, after_first):
                since = "after its first ones there" if after_first else "after the move"
                return f"no step within {span(limit)} {since}, though its pods run and are read"
            case NothingProven(limit, unit):
                missing = "complete profile" if unit is None else f"throughput in {unit.plural}/s, as before the move,"
                return f"no {missing} within {span(limit)} after the move, so nothing can be proven; the job stays"

    def stays(self, migration: Migration, why: Reason) -> str:
        """Why a job that is worse off does not go back."""
        where = place(migration.source.placement)
        return {
            Reason.SOURCE_NOT_HELD: (
                f"it stays, because no chips were held for a way back to {where}, which other jobs waited for"
            ),
            Reason.NO_ROOM_TO_RETURN: f"it stays, because there is no room for {where}, where it came from",
            Reason.RETURN_DOES_NOT_PAY: "it stays, because over the time left it loses less than a restart would cost",
            Reason.PLACEMENT_DISALLOWED: f"it stays, because {_DISALLOWED}: see why it hangs",
        }[why]

    def verified(self, migration: Migration, result: Verification) -> str:
        """What a move delivered, against what it promised and what was before."""
        delivered = _delivered(migration, result)
        if result.verdict is Verdict.IDLE:
            return f"the program does nothing there; {delivered}"
        if result.likely is None or result.ratio is None:
            return f"there is no baseline to compare with; {delivered}"
        # What was measured in a few windows is not all that counts.
        likely = "likely " if abs(result.likely - result.ratio) >= LIKELY else ""
        if result.verdict is Verdict.DEARER:
            return f"not faster than before, and the placement before cost less; {delivered}"
        if result.verdict is Verdict.WORSE:
            worse = f"{likely}{result.likely - 1:.0%} worse than before"
            return f"{worse}, where chance alone may make {result.tolerance:.0%}; {delivered}"
        if result.verdict is Verdict.BETTER:
            tail = "" if result.reason is Reason.DELIVERED else ", less than promised, but better than before"
            than = "less time for the same work than" if result.by_time else "better than"
            return f"{likely}{1 - result.likely:.0%} {than} before{tail}; {delivered}"
        if yardstick_of(migration.reason) is Yardstick.NONE:
            target = target_of(migration.reason)
            why = _DISALLOWED if target is None else f"where it was, {target.name} does not hold"
            return f"it stays, because {why}; {delivered}"
        return f"not certainly better or worse than before, so it stays; {delivered}"


def _not_running(setback: NotRunning) -> str:
    why = setback.cause or _UNKNOWN
    if setback.queue is not None:
        why = f"queue {setback.queue} has not admitted it"
    text = f"not running after {span(setback.deadline)}: {why}"
    if setback.no_room is not None:
        text += f"; there is no room on {setback.no_room}, where it came from"
    return f"on the way back: {text}" if setback.returning else text


def stopped_unsaved(job: Job, pause: Pause) -> str:
    """Why a job is stopped without the save that was asked for, what is done again and what helps."""
    after = "it is stopped without it"
    if pause.unsaved is Reason.SAVE_FAILED and job.child is not None:
        return _failed_save(job, job.child, after, pause.since)
    return f"{_no_save(job)}; {after}; {_repeated(job, pause.since + job.spec.checkpoint.timeout.total_seconds())}"


def _failed_save(job: Job, state: RevisionState, after: str, now: float) -> str:
    repeated = _repeated(job, now if state.crash is None else state.crash.at)
    return f"the program failed when asked to save: {brief(_failure(state), 100)}; {after}; {_MEND_SAVE}; {repeated}"


def _no_save(job: Job) -> str:
    detail = f": {job.observed.checkpoint_error}" if job.observed.checkpoint_error else ""
    return f"no new checkpoint within {span(job.spec.checkpoint.timeout.total_seconds())}{detail}"


def _failure(state: RevisionState) -> str:
    """How the program failed, with the last line that it has written."""
    if state.crash is None:
        return state.failure or _FAILED
    lines = state.crash.output.splitlines()
    return f"{state.crash}: {lines[-1].strip()}" if lines else str(state.crash)


def _repeated(job: Job, ended: float) -> str:
    """What the program does again that it had done until `ended`, Unix seconds."""
    saved, track = job.observed.checkpoint_at, job.observed.track
    if saved is None:
        return "no save of it is known, and without one it starts from the beginning"
    text = f"{span(max(0.0, ended - saved))} of work since its last save at {instant(saved)} are done again"
    units = 0.0 if track is None else track.since_save()
    return f"{text}, {number(units)} {track.unit.plural}" if track is not None and units >= 1.0 else text


def _delivered(migration: Migration, result: Verification) -> str:
    text = f"measured {number(result.throughput)} {result.unit.plural}/s"
    if result.cost_per_million is not None:
        text += f" at {dollars(result.cost_per_million)} per million"
        if result.unit is not WorkUnit.SAMPLES:
            text += f" {result.unit.plural}"
    if migration.baseline is not None:
        text += f"; before {number(migration.baseline)}"
        if migration.baseline_cost is not None:
            text += f" at {dollars(migration.baseline_cost)}"
    if migration.predicted is not None:
        predicted = migration.predicted
        text += f"; predicted {number(predicted.median)} ({number(predicted.low)}–{number(predicted.high)})"
        promised_cost = measured_cost_per_million(predicted.median, migration.target.cost_per_hour)
        if promised_cost is not None:
            text += f" at {dollars(promised_cost)}"
    return text
