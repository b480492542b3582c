"""What is worth an Event: decisions, phases, outcomes, and conditions that flip. Made from two states, posted after the
write that made the second one true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rightpool.api.conditions import Condition, ConditionType, Reason
from rightpool.cluster.events import Event
from rightpool.planning.ledger import Outcome
from rightpool.planning.snapshot import JobState
from rightpool.planning.transitions import FAILED
from rightpool.planning.wording import chips

# A phase is told by its own Events, and these two follow from others.
_SILENT: Final = frozenset({ConditionType.MIGRATING.value, ConditionType.TARGETS_MET.value})
# Where True is the bad news.
_INVERTED: Final = frozenset({ConditionType.DEGRADED.value, ConditionType.FAILED.value})
# How every job begins.
_EXPECTED: Final = frozenset({Reason.STARTING.value, Reason.WARMING_UP.value, Reason.NO_TELEMETRY.value})
# What was wished for, or is the best of ends.
_WISHED: Final = frozenset({Reason.SUSPENDED.value, Reason.STOPPING.value, Reason.JOB_COMPLETED.value})
_BAD_OUTCOMES: Final = frozenset({Outcome.ROLLED_BACK, Outcome.FAILED})


def announcements(
    regarding: Mapping[str, str],
    old: JobState,
    new: JobState,
    before: Iterable[Condition],
    after: Iterable[Condition],
) -> Iterator[Event]:
    """Events for the step from one persisted state, with its conditions, to the next."""
    if old.ref is None and new.ref is not None:
        at = new.ref.placement
        note = f"r{new.ref.revision}: {chips(at.chips)} of {at.pool}, replicas: {at.replicas}"
        yield Event(regarding, "Starting", "Place", note)
    yield from _migration(regarding, old, new)
    if old.finished is None and new.finished is not None:
        yield Event(
            regarding, f"Job{new.finished}", "Finish", f"the job has {new.finished.lower()}", new.finished == FAILED
        )
    known = {condition.type: condition for condition in before}
    for condition in after:
        other = known.get(condition.type)
        if condition.type in _SILENT or condition.status == "Unknown":
            continue
        if other is not None and other.status == condition.status:
            continue
        if condition.reason in _EXPECTED:
            continue
        bad = (condition.status == "True") == (condition.type in _INVERTED)
        if other is None and not bad:
            continue  # a job that is as it should be from the start is no news
        note = (
            f"{condition.type} is {condition.status}: {condition.message}"
            if condition.message
            else (f"{condition.type} is {condition.status}")
        )
        yield Event(regarding, condition.reason, "Observe", note, bad and condition.reason not in _WISHED)


def _migration(regarding: Mapping[str, str], old: JobState, new: JobState) -> Iterator[Event]:
    was, now = old.migration, new.migration
    if now is not None:
        if was is None or was.id != now.id:
            source, target = now.source.placement, now.target.placement
            note = (
                f"{now.id}: {now.action.value} from {chips(source.chips)} of {source.pool} to {chips(target.chips)} of "
                f"{target.pool}: {now.message}"
            )
            yield Event(regarding, now.reason.value, "Decide", note)
        elif was.rolling_back != now.rolling_back:
            note = f"{now.id}: back to {now.target.placement.pool}: {now.failure_message}"
            yield Event(regarding, "RollingBack", "Migrate", note, warning=True)
        elif was.phase is not now.phase:
            yield Event(regarding, now.phase.value, "Migrate", f"{now.id}: {now.phase.value}")
    if was is not None and (now is None or now.id != was.id):
        entry = next((entry for entry in reversed(new.history) if entry.id == was.id), None)
        if entry is not None:
            note = f"{entry.id}: {entry.outcome.value}: {entry.message}"
            yield Event(regarding, str(entry.reason), "Migrate", note, entry.outcome in _BAD_OUTCOMES)
