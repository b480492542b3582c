"""What a status keeps of a migration in words: what it delivered, why it stays, and why it left without a save."""

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
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.moves.setback import FAILED
from rightpool.planning.offers.targets.registry import target_of, yardstick_of
from rightpool.planning.work.verification import Verification

# By how much what is believed differs from what was measured, where it is said.
LIKELY: Final = 0.02

_DISALLOWED: Final = "where it was is not allowed any more"

_MEND_SAVE: Final = "see that spec.checkpoint.path has room, and that the program's saves work"


def unsaved_text(job: Job, migration: Migration, why: Reason, now: float, *, leaves: bool) -> str:
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


def stays_text(migration: Migration, why: Reason) -> str:
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


def verified_text(migration: Migration, result: Verification) -> str:
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
        return f"{worse}, beyond the {result.tolerance:.0%} that chance may make; {delivered}"
    if result.verdict is Verdict.BETTER:
        tail = "" if result.reason is Reason.DELIVERED else ", less than promised, but better than before"
        than = "less time for the same work than" if result.by_time else "better than"
        return f"{likely}{1 - result.likely:.0%} {than} before{tail}; {delivered}"
    if yardstick_of(migration.reason) is Yardstick.NONE:
        target = target_of(migration.reason)
        why = _DISALLOWED if target is None else f"where it was, {target.name} does not hold"
        return f"it stays, because {why}; {delivered}"
    return f"not certainly better or worse than before, so it stays; {delivered}"


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
        return state.failure or FAILED
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
