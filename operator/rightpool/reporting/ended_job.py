"""The record of a job that has ended, from its object as it is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from rightpool.api.altered import altered
from rightpool.api.conditions import find_condition
from rightpool.api.ended_job import MAX_STAYS, EndedJob, Stay
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.work_unit import WorkUnit
from rightpool.reporting.stored_job import StoredJob

KEPT_OF_SPEC: Final = ("elasticity", "placement", "targets", "progress", "checkpoint", "adaptation")
LONGEST: Final = 4000
"""Characters of a record. What would be longer goes without its spec, and then without its profile."""
_STAYED: Final = (Outcome.VERIFIED, Outcome.CARRIED_OUT, Outcome.FAILED)


RUNNING: Final = "Running"
"""Result of a job that has not ended."""


def ended_job(stored: StoredJob) -> EndedJob | None:
    """The record; None of a job that has not ended, never had a place, or has no time of its end."""
    state = stored.job.state
    return None if state.finished is None else _record(stored, None)


def so_far(stored: StoredJob, now: float) -> EndedJob | None:
    """The same of a job that runs, as if it ended now, Unix seconds; None of one that never had a place."""
    return None if stored.job.state.finished is not None else _record(stored, now)


def _record(stored: StoredJob, now: float | None) -> EndedJob | None:
    job, state = stored.job, stored.job.state
    ref = state.revision
    if ref is None or job.unreadable is not None or job.invalid is not None:
        return None
    status = stored.status
    condition = find_condition(status.conditions, state.finished or "")
    ended = now if condition is None else condition.last_transition_time
    if ended is None:
        return None
    progress = state.progress
    stays = tuple(_stays(status, ref, min(job.created_at, ended), ended))[-MAX_STAYS:]
    chips, replicas = ref.requested
    record = EndedJob(
        job=str(job.key),
        uid=job.uid,
        arrived=min(job.created_at, stays[0].begin),
        stays=stays,
        result=state.finished or RUNNING,
        replicas=replicas,
        chips=chips,
        work=None if progress is None or not progress.done else progress.done,
        unit=WorkUnit.SAMPLES if progress is None else progress.unit,
        restart=_restart(state.history, ref),
        spent=state.account.spent_by(ended),
        chip_seconds=state.account.settled(ended).chip_seconds,
        moves=sum(1 for entry in state.history if entry.outcome in _STAYED and entry.source != entry.target),
        profile=None if status.profile is None else replace(status.profile, scaling_efficiency=None, derived=()),
        spec=_spec(stored),
    )
    if len(record.line) > LONGEST:
        record = altered(record, spec={})
    if len(record.line) > LONGEST:
        record = altered(record, profile=None)
    return record


def _stays(status: ProfiledJobStatus, ref: Revision, arrived: float, ended: float) -> Iterator[Stay]:
    """The places of the last decisions that the status has. Of an attempt that was undone only the time is left."""
    history = [entry for entry in status.state.history if arrived <= entry.started_at <= ended]
    moves = [entry for entry in history if entry.outcome in _STAYED and entry.source != entry.target]
    undone = sum(entry.lost_seconds for entry in history if entry.outcome is Outcome.ROLLED_BACK)
    began = max(arrived, ref.created_at)
    here, lost, rate, chip = ref.placement, _starting(ref), _last_rate(status, ref), ref.chip
    if moves:
        first = moves[0]
        here, rate, chip = first.source, first.baseline_throughput, first.source_chip
        before = [entry.started_at for entry in history if entry.target == here and entry.started_at < first.started_at]
        began, lost = before[0] if before else arrived, 0.0
    for entry, following in zip_longest(moves, moves[1:]):
        yield _stay(here, began, entry.started_at, chip, rate, lost)
        here, began, lost, chip = entry.target, entry.started_at, entry.lost_seconds, entry.target_chip
        rate = entry.realised_throughput or None
        if rate is None:
            rate = _last_rate(status, ref) if following is None else following.baseline_throughput
    yield _stay(here, began, ended, chip, rate, lost + undone)


def _stay(placement: Placement, begin: float, end: float, chip: str | None, rate: float | None, lost: float) -> Stay:
    end = max(begin, end)
    return Stay(placement, begin, end, chip, rate or None, min(lost, end - begin))


def _starting(ref: Revision) -> float:
    return 0.0 if ref.since is None else max(0.0, ref.since - ref.created_at)


def _last_rate(status: ProfiledJobStatus, ref: Revision) -> float | None:
    """At the last place, by its last complete profile."""
    progress = status.state.progress
    if progress is not None and progress.rate is not None and progress.revision == ref.revision:
        return progress.rate
    known = None if status.profile is None else status.profile.throughput
    return None if known is None or progress is None or known[1] is not progress.unit else known[0]


def _restart(history: tuple[LedgerEntry, ...], ref: Revision) -> float | None:
    lost = [entry.lost_seconds for entry in history if entry.outcome in _STAYED and entry.lost_seconds]
    if lost:
        return sum(lost) / len(lost)
    return _starting(ref) or None


def _spec(stored: StoredJob) -> dict[str, Any]:
    """Without what of it names programs: variants are templates."""
    found = {}
    for name in KEPT_OF_SPEC:
        part = getattr(stored.job.spec, name)
        if part is not None:
            body = json.loads(part.model_dump_json(by_alias=True, exclude_defaults=True))
            body.pop("variants", None)
            if body:
                found[name] = body
    return found
