"""What is worth an Event: a start, a decision, what a move did, the end, and what is wrong or right again.

Made from two states, and posted after the write that made the second one true. Each statement is made once: it is
remembered by job until the opposite is so, whatever was unknown in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import floor
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason, find_condition
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.program_edit import EditVerdict
from rightpool.api.trace import TraceState
from rightpool.api.trial_run import TrialRun
from rightpool.api.units import write_unix_time
from rightpool.api.value_object import value_object
from rightpool.api.wording import brief, chips, number, place, span
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trial_seen import trial_name
from rightpool.planning.moves.migration_texts import stopped_unsaved
from rightpool.planning.moves.transitions import FAILED
from rightpool.reporting.trial_texts import NOTHING_MEASURED, shown

# Told by the Events of a move, of the end of the job, or of another condition.
_SILENT: Final = frozenset(
    {ConditionType.MIGRATING, ConditionType.VERIFIED, ConditionType.COMPLETED, ConditionType.FAILED}
)
# But for these.
_OF_MOVES: Final = frozenset({Reason.APPROVAL_UNKNOWN.value, Reason.CHANGE_UNDONE.value})
# A move changes them on its way, and its own Events say so.
_OF_WHERE_IT_RUNS: Final = frozenset({ConditionType.PROFILED, ConditionType.EFFICIENT, ConditionType.COST_EFFICIENT})
# Where True is the bad news.
_INVERTED: Final = frozenset({ConditionType.DEGRADED})
# Worth an Event when it is over.
_FAULTS: Final = frozenset({Reason.THROTTLED.value})
_MENDED: Final = frozenset({ConditionType.PLACED, ConditionType.TARGETS_MET, ConditionType.DEGRADED})
_SURE: Final = frozenset({EditVerdict.IMPROVED, EditVerdict.REGRESSED})
# How every job begins, and how it ends or compares since an edit, which has an Event of its own.
_EXPECTED: Final = frozenset(
    {
        Reason.STARTING.value,
        Reason.WORKLOAD_NOT_RUNNING.value,
        Reason.WARMING_UP.value,
        Reason.NO_TELEMETRY.value,
        Reason.STOPPING.value,
        Reason.FINISHING.value,
        Reason.JOB_COMPLETED.value,
        Reason.JOB_FAILED.value,
        Reason.REGRESSED.value,
    }
)
_WISHED: Final = frozenset({Reason.SUSPENDED.value})
_BAD_OUTCOMES: Final = frozenset({Outcome.ROLLED_BACK, Outcome.FAILED})
_BAD_REASONS: Final = frozenset({Reason.INVALID_TEMPLATE.value, Reason.INVALID_VARIANT.value, Reason.SAVE_FAILED.value})
_PODS_LOST: Final = "PodsLost"


@value_object
class Event:
    """Something that happened, as an Event of Kubernetes says it."""

    regarding: Mapping[str, str]
    """apiVersion, kind, name, namespace and uid of the object."""
    reason: str
    """As in conditions."""
    action: str
    """What was done, as one verb."""
    note: str
    """The sentence."""
    warning: bool = False
    """Whether a user should see to it."""
    subject: str = ""
    """What the statement is about: one about the same is not repeated within a short time. Empty: its words."""


@dataclass(slots=True)
class JobEvents:
    """Makes Events of jobs, and remembers by uid what was said to be wrong. Threads may make those of other jobs."""

    _wrong: dict[str, dict[str, str]] = field(default_factory=dict)
    """Condition type → reason that an Event was made of."""

    def events(
        self,
        regarding: Mapping[str, str],
        old: Job,
        new: Job,
        before: Iterable[Condition],
        after: Iterable[Condition],
    ) -> Iterator[Event]:
        """Events for the step from one persisted state, with its conditions, to the next."""
        before, after = tuple(before), tuple(after)
        if old.state.revision is None and new.state.revision is not None:
            at = new.state.revision.placement
            note = f"r{new.state.revision.revision}: {chips(at.chips)} of {at.pool}, replicas: {at.replicas}"
            yield Event(regarding, "Starting", "Place", note)
        yield from _migration(regarding, old, new)
        yield from _rescue(regarding, old, new)
        yield from _pause(regarding, old, new)
        yield from _trace(regarding, old, new)
        yield from _trial(regarding, old, new)
        edit = new.state.judged_edit
        if edit is not None and edit.verdict in _SURE and old.state.judged_edit != edit:
            worse = edit.verdict is EditVerdict.REGRESSED
            yield Event(regarding, edit.verdict.value, "Observe", edit.message, worse)
        if old.state.finished is None and new.state.finished is not None:
            yield _end(regarding, new, after)
        if new.uid not in self._wrong:  # a new process repeats nothing of what is stored
            self._wrong[new.uid] = {c.type: c.reason for c in before if _bad(c) and c.reason not in _EXPECTED}
        wrong = self._wrong[new.uid]
        if old.state.revision is None and new.state.revision is not None:
            wrong.pop(ConditionType.PLACED, None)  # the start says that the wait is over
        for condition in after:
            shown = condition.type not in _SILENT or condition.reason in _OF_MOVES
            if shown and condition.status != "Unknown" and (_bad(condition) or condition.type in wrong):
                yield from _statement(regarding, new, find_condition(before, condition.type), condition, wrong)

    def forget(self, uids: Collection[str]) -> None:
        """Jobs that do not exist any more."""
        for uid in uids:
            self._wrong.pop(uid, None)


def _bad(condition: Condition) -> bool:
    return condition.status != "Unknown" and (condition.status == "True") == (condition.type in _INVERTED)


def _statement(
    regarding: Mapping[str, str], job: Job, before: Condition | None, condition: Condition, wrong: dict[str, str]
) -> Iterator[Event]:
    """What a condition has to say that was not said before."""
    kind, reason = condition.type, condition.reason
    migration = job.state.migration
    if migration is not None and (kind in _OF_WHERE_IT_RUNS or reason == Reason.SUSPENDED):
        return
    if not _bad(condition):
        was = wrong.pop(kind, None)
        if was is not None and (kind in _MENDED or was in _FAULTS):
            yield Event(regarding, reason, "Observe", condition_text(condition), subject=f"{kind}={condition.status}")
        return
    if kind == ConditionType.PLACED and reason == Reason.STARTING and migration is None:
        ran = before is not None and before.reason == Reason.RUNNING
        reason = _PODS_LOST if ran else reason
    if reason in _EXPECTED or wrong.get(kind) == reason:
        return
    wrong[kind] = reason
    yield Event(regarding, reason, "Observe", condition_text(condition), reason not in _WISHED, f"{kind}={reason}")


def condition_text(condition: Condition) -> str:
    """What an Event says of a condition."""
    return condition.message or f"{condition.type} is {condition.status}"


def _end(regarding: Mapping[str, str], job: Job, after: Iterable[Condition]) -> Event:
    how = str(job.state.finished)
    condition = find_condition(after, how)
    message = "" if condition is None or not condition.message else f": {condition.message}"
    return Event(regarding, f"Job{how}", "Finish", f"the job has {how.lower()}{message}", how == FAILED)


def _rescue(regarding: Mapping[str, str], old: Job, new: Job) -> Iterator[Event]:
    """The save that is asked for where pods are about to be lost, and what came of it."""
    was, now = old.state.rescue, new.state.rescue
    if now is None:
        return
    if was is None or was.since != now.since:
        about = "1 pod is" if now.pods == 1 else f"{now.pods} pods are"
        threat = new.observed.threat
        evicted = "evicted" if threat is None or threat.cause is None else threat.cause
        why = evicted if now.node is None else f"node {now.node} is drained"
        note = f"{about} about to be lost ({why}): the program is asked to save"
        yield Event(regarding, "SaveRequested", "Save", note, warning=True, subject="rescue")
    elif now.over and not was.over and now.saved_at is not None:
        note = f"the program saved at {write_unix_time(floor(now.saved_at))}, before its pods are lost"
        yield Event(regarding, "Saved", "Save", note, subject="rescued")
    elif now.over and not was.over:
        timeout = span(new.spec.checkpoint.timeout.total_seconds())
        note = f"no new save within {timeout} after one was asked for because pods are about to be lost"
        yield Event(regarding, "NotSaved", "Save", note, warning=True, subject="rescued")


def _pause(regarding: Mapping[str, str], old: Job, new: Job) -> Iterator[Event]:
    """That a job is stopped without the save that was asked for."""
    was, now = old.state.pause, new.state.pause
    if now is not None and now.unsaved is not None and (was is None or was.unsaved is None):
        yield Event(regarding, now.unsaved.value, "Save", stopped_unsaved(new, now), warning=True, subject="pause")


def _trace(regarding: Mapping[str, str], old: Job, new: Job) -> Iterator[Event]:
    """What became of the trace that a user asked for."""
    was, now = old.state.trace, new.state.trace
    if now is None or not now.over or (was is not None and was.over and was.since == now.since):
        return
    if now.state is TraceState.CAPTURED:
        if now.ranks is not None:
            whose = f"all ranks was taken ({now.ranks.captured} captured, {now.ranks.failed} failed)"
        else:
            whose = f"rank {now.rank} was taken in pod {now.pod}"
        cost = None if now.summary is None or now.ranks is not None else now.summary.cost
        took = "" if cost is None else f", and cost the program {number(float(cost))} s"
        note = f"trace {now.id} of {whose}{took}: `rightpool trace` shows and reads it"
        yield Event(regarding, "TraceCaptured", "Trace", note, subject=now.id)
    else:
        yield Event(regarding, str(now.reason), "Trace", f"trace {now.id}: {now.message}", warning=True, subject=now.id)


def _trial(regarding: Mapping[str, str], old: Job, new: Job) -> Iterator[Event]:
    """That the program is tried elsewhere, and what that has shown."""
    was, now = old.state.trial, new.state.trial
    if was is None and now is not None:
        note = f"the program is tried on {place(now.placement)} for {span(now.measures)}, by {_trial_of(new, now)}"
        yield Event(regarding, "TrialBegun", "Try", note)
    elif was is not None and now is None:
        if len(new.state.tried) and new.state.tried != old.state.tried:
            tried = new.state.tried[-1]
            if tried.ratio is None:
                yield Event(regarding, "TrialFailed", "Try", shown(tried), warning=True)
            else:
                note = f"{shown(tried)}; {_trial_of(new, was)} cost ${tried.cost:.2f}"
                yield Event(regarding, "TrialOver", "Try", note)
        elif new.observed.trial is not None and new.observed.trial.taken:
            note = f"{_trial_of(new, was)} is there and somebody else's: the next trial has the next number"
            yield Event(regarding, "TrialFailed", "Try", note, warning=True)
        else:
            yield Event(regarding, "TrialOver", "Try", f"{_trial_of(new, was)} {NOTHING_MEASURED}")
    answer = new.state.trial_answer
    if answer is not None and answer.refused and answer != old.state.trial_answer:
        note = brief(f"trial {answer.id} is refused: {answer.refused}")
        yield Event(regarding, "TrialRefused", "Try", note, warning=True, subject=answer.id)


def _trial_of(job: Job, run: TrialRun) -> str:
    return f"ProfiledJob {trial_name(job.key.name, run.number)}"


def _migration(regarding: Mapping[str, str], old: Job, new: Job) -> Iterator[Event]:
    """The decision, the end of the old pods, the start of the new ones, and the outcome."""
    was, now = old.state.migration, new.state.migration
    if now is not None:
        if was is None or was.id != now.id:
            source, target = now.source.placement, now.target.placement
            way, there = f"{now.id}: {now.action.value} from {place(source)} to", place(target)
            note = f"{way} {now.message if now.message.startswith(there) else f'{there}; {now.message}'}"
            yield Event(regarding, now.reason.value, "Decide", note)
        elif was.rolling_back != now.rolling_back:
            note = f"{now.id}: back to {now.target.placement.pool}: {now.failure_message}"
            yield Event(regarding, "RollingBack", "Migrate", note, warning=True)
        elif was.phase is not now.phase and now.phase is Phase.DRAINING:
            saved = "after a save" if now.saved_at is not None else "without a new save"
            note = f"{now.id}: r{now.moving.revision} is ended {saved}"
            if now.unsaved is None:
                yield Event(regarding, now.phase.value, "Migrate", note)
            else:
                why = now.failure_message if now.rolling_back else now.message
                yield Event(regarding, now.unsaved.value, "Save", f"{note}: {why}", warning=True)
        elif was.phase is not now.phase and now.phase is Phase.WARMING_UP:
            at = now.target.placement
            note = f"{now.id}: r{now.target.revision} runs on {chips(at.chips)} of {at.pool} and is measured now"
            yield Event(regarding, now.phase.value, "Migrate", note)
    if was is not None and (now is None or now.id != was.id):
        entry = next((entry for entry in reversed(new.state.history) if entry.id == was.id), None)
        if entry is not None:
            note = f"{entry.id}: {entry.outcome.value}: {entry.message}"
            bad = entry.outcome in _BAD_OUTCOMES or entry.reason in _BAD_REASONS
            yield Event(regarding, str(entry.reason), "Migrate", note, bad)
