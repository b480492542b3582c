"""Where a job was and how fast, as its ledger tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rightpool.api.ledger import MAX_HISTORY, Outcome
from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.profiles.profile import Steadiness

# The job stayed where such a decision brought it.
_STAYED: Final = frozenset({Outcome.VERIFIED, Outcome.FAILED, Outcome.CARRIED_OUT, Outcome.SUPERSEDED})


@value_object
class Stretch:
    """Time on one placement, or of one move with its verification. Unix seconds, units of work a second."""

    start: float
    """Of the time."""
    end: float
    """Of the time, later than start."""
    placement: Placement
    """Where the job was."""
    rate: float | None
    """None where it was not measured."""
    what: str
    """`ran`, or the decision with its outcome."""
    moves: bool = False
    """Whether it is of a move with its verification."""
    promised: float | None = None
    """Throughput, of a move."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What rate and promised count."""


def rate_now(job: Job) -> float | None:
    """Units of work a second where the job is; None where that is not measured now."""
    profile = job.observed.profile
    steady = profile is not None and profile.steadiness is Steadiness.STEADY
    throughput = profile.throughput if profile is not None and steady else None
    return None if throughput is None else throughput.value


def stretches(job: Job, rate: float | None, now: float) -> list[Stretch]:
    """What the ledger has, the oldest first, and what is now. rate: measured now, in the unit of the profile.

    A status keeps the last seven decisions: of a job with so many the time before them is not told.
    """
    return [stretch for stretch in _recorded_stretches(job, rate, now) if stretch.end > stretch.start]


def _recorded_stretches(job: Job, rate: float | None, now: float) -> Iterator[Stretch]:
    done = [entry for entry in job.state.history if entry.outcome is not Outcome.HELD]
    ref, migration = job.state.revision, job.state.migration
    since: float | None = None
    ran = "ran"
    if len(job.state.history) >= MAX_HISTORY:
        pass  # what was before the first entry is not known
    elif done or migration is not None:
        since, ran = job.created_at, "created, and ran"
    elif ref is not None:
        since = ref.since or ref.created_at
    after: float | None = None  # the rate that the last decision has left the job with
    counted = WorkUnit.SAMPLES  # by that rate
    for entry in done:
        before = entry.baseline_throughput
        if since is not None:
            level, unit = (after, counted) if before is None else (before, entry.unit)
            yield Stretch(since, entry.started_at, entry.source, level, ran, unit=unit)
        outcome = f"{entry.action.value} {entry.id}: {entry.outcome.value}"
        realised = entry.realised_throughput
        promised = entry.predicted_throughput
        yield Stretch(entry.started_at, entry.finished_at, entry.target, realised, outcome, True, promised, entry.unit)
        after, counted = (realised if entry.outcome in _STAYED else before), entry.unit
        since, ran = entry.finished_at, "ran"
    if ref is None or since is None:
        return
    if migration is not None:
        yield Stretch(
            since, migration.created_at, migration.source.placement, migration.baseline, ran, unit=migration.unit
        )
        what = f"{migration.action.value} {migration.id}: {migration.phase.value}"
        promised = None if migration.predicted is None else migration.predicted.median
        unit = unit_of(job)
        if unit is not migration.unit:
            promised = None
        yield Stretch(migration.created_at, now, migration.target.placement, rate, what, True, promised, unit)
    elif job.state.finished is None:
        yield Stretch(since, now, ref.placement, rate, f"revision {ref.revision}, now", unit=unit_of(job))
