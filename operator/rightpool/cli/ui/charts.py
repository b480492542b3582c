"""Drawings as numbers: what a template needs to draw them. Lengths are in thousandths of the width, or hundredths of
the height."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool.api.ledger import MAX_HISTORY, Outcome
from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.table import NOTHING
from rightpool.planning.evaluate.candidate import Candidate
from rightpool.planning.job import Job, unit_of
from rightpool.profiles.profile import Profile, Steadiness
from rightpool.profiles.shares import decompose
from rightpool.reporting.rejection_texts import short_place
from rightpool.reporting.wording import dollars, number, share, span

WIDTH: Final = 1000.0
HEIGHT: Final = 100.0
# A stretch of a minute in a month is still seen.
_THINNEST: Final = 3.0
# Intervals are drawn up to so many times the lowest median; what is dearer is cut off there.
_CUT: Final = 4.0
# The job stayed where such a decision brought it.
_STAYED: Final = frozenset({Outcome.VERIFIED, Outcome.FAILED, Outcome.CARRIED_OUT, Outcome.SUPERSEDED})


# --- the timeline ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch as it is drawn and told."""

    left: float
    """In units of the drawing, as width and height are."""
    width: float
    """As long as the time is."""
    height: float
    """As high as the throughput is."""
    kind: str
    """ran, moves, or unknown where the rate was not measured, or in another unit than now."""
    where: str
    """The placement, for a reader, as the texts below are."""
    when: str
    """From when to when."""
    rate: str
    """Throughput as it was measured, with its unit; a dash where it was not."""
    promised: str
    """Throughput as it was predicted, with its unit; a dash where nothing was."""
    what: str
    """That it ran, or the decision with its outcome."""


def rate_now(job: Job) -> float | None:
    """Units of work a second where the job is; None where that is not measured now."""
    profile = job.observed.profile
    steady = profile is not None and profile.steadiness is Steadiness.STEADY
    throughput = profile.throughput if profile is not None and steady else None
    return None if throughput is None else throughput.value


def stretches(job: Job, rate: float | None, now: float) -> list[Stretch]:
    """What the ledger tells of, the oldest first, and what is now. rate: measured now, in the unit of the profile.

    A status keeps the last ten decisions: of a job with so many the time before them is not told.
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


def bars(drawn: Sequence[Stretch], now: float) -> list[Bar]:
    """The stretches over time, as high as they are fast. Those in another unit than the newest one are told alone."""
    if not drawn:
        return []
    begin, end = drawn[0].start, drawn[-1].end
    unit = next((stretch.unit for stretch in reversed(drawn) if stretch.rate is not None), WorkUnit.SAMPLES)
    fastest = max((stretch.rate or 0.0 for stretch in drawn if stretch.unit is unit), default=0.0)
    return [
        Bar(
            left=min(WIDTH - _THINNEST, (stretch.start - begin) / (end - begin) * WIDTH),
            width=max(_THINNEST, (stretch.end - stretch.start) / (end - begin) * WIDTH),
            height=_height(stretch, unit, fastest),
            kind="unknown" if stretch.rate is None or stretch.unit is not unit else "moves" if stretch.moves else "ran",
            where=short_place(stretch.placement),
            when=f"{span(now - stretch.start)} ago, for {span(stretch.end - stretch.start)}",
            rate=_rate(stretch.rate, stretch.unit),
            promised=_rate(stretch.promised, stretch.unit),
            what=stretch.what,
        )
        for stretch in drawn
    ]


def _height(stretch: Stretch, unit: WorkUnit, fastest: float) -> float:
    known = stretch.rate is not None and stretch.unit is unit and fastest > 0.0
    return (stretch.rate or 0.0) / fastest * HEIGHT if known else HEIGHT


def _rate(rate: float | None, unit: WorkUnit) -> str:
    return NOTHING if rate is None else f"{number(rate)} {unit.plural}/s"


# --- a step ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time of a step."""

    name: str
    """What the time goes to, for a reader."""
    text: str
    """Its share, for a reader."""
    left: float
    """In units of the drawing, as its width is."""
    width: float
    """As wide as its share is."""
    kind: str
    """compute, bandwidth, chip, communication, input or host."""


def step_parts(profile: Profile | None) -> list[Part]:
    """Where the time of a step goes; empty where that is not known."""
    shares = None if profile is None else decompose(profile)
    if shares is None:
        return []
    if shares.compute is None or shares.bandwidth is None:
        work = [("work on the chip", shares.chip, "chip")]
    else:
        work = [("limited by compute", shares.compute, "compute"), ("by memory", shares.bandwidth, "bandwidth")]
    work += [
        ("exposed communication", shares.communication, "communication"),
        ("waits for input", shares.input, "input"),
        ("waits for the host", shares.host, "host"),
    ]
    parts: list[Part] = []
    left = 0.0
    for name, value, kind in work:
        parts.append(Part(name, share(value), left, value * WIDTH, kind))
        left += value * WIDTH
    return [part for part in parts if part.width >= 0.5]


# --- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval:
    """What a million units of work cost at a placement, with 80% interval."""

    where: str
    """The placement, for a reader."""
    text: str
    """The cost, for a reader."""
    low: float
    """In units of the drawing, as median and high are."""
    median: float
    """Where the mark is drawn."""
    high: float
    """The right end; at the edge where it is cut."""
    cut: bool
    """Whether it goes on beyond the drawing."""
    kind: str
    """now, target, eligible or rejected."""


def intervals(current: Candidate | None, candidates: Sequence[Candidate], target: Placement | None) -> list[Interval]:
    """Those with a price, in their order, the current placement first."""
    rows = with_kinds(current, candidates, target)
    priced = [(kind, each, each.cost_per_million) for kind, each in rows if each.cost_per_million is not None]
    if not priced:
        return []
    lowest = min(cost.median for _, _, cost in priced)
    most = min(max(cost.high for _, _, cost in priced), _CUT * lowest) or 1.0

    def at(value: float) -> float:
        return min(1.0, value / most) * WIDTH

    return [
        Interval(
            where=short_place(each.placement),
            text=dollars(cost.median) + (f" ({dollars(cost.low)} to {dollars(cost.high)})" if cost.sd else ""),
            low=at(cost.low),
            median=at(cost.median),
            high=at(cost.high),
            cut=cost.high > most,
            kind=kind,
        )
        for kind, each, cost in priced
    ]


def with_kinds(
    current: Candidate | None, candidates: Sequence[Candidate], target: Placement | None
) -> list[tuple[str, Candidate]]:
    """Each with how it is drawn: now, target, eligible or rejected. The current one comes first."""
    found = [] if current is None else [("now", current)]
    for each in candidates:
        kind = "target" if each.placement == target else "eligible" if each.eligible else "rejected"
        found.append((kind, each))
    return found
