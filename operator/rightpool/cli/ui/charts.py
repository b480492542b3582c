"""Drawings as numbers: what a template needs to draw them. Lengths are in thousandths of the width, or hundredths of
the height."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.wording import dollars, number, short_place, span
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.candidate_kinds import with_kinds
from rightpool.cli.compare.rows import ComparedRow
from rightpool.cli.simulate.runs import Simulated, relative_changes
from rightpool.cli.table import NOTHING
from rightpool.cli.timeline import Stretch
from rightpool.planning.offers.candidate import Candidate

WIDTH: Final = 1000.0
HEIGHT: Final = 100.0
# A stretch of a minute in a month is still seen.
_THINNEST: Final = 3.0
# Intervals are drawn up to so many times the lowest median; what is dearer is cut off there.
_CUT: Final = 4.0


# --- the timeline ----------------------------------------------------------------------------------------------------


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


def bars(drawn: Sequence[Stretch], now: float) -> list[Bar]:
    """The stretches over time, as high as they are fast. Those in another unit than the newest one are unknown."""
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


# --- candidates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval:
    """What a million units of work cost at a placement, how fast they go there, or what changes make of a figure, with
    80% interval."""

    where: str
    """The placement or the figure, for a reader."""
    text: str
    """How much it is, for a reader."""
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
    return [
        _interval(
            short_place(each.placement),
            dollars(cost.median) + (f" ({dollars(cost.low)} to {dollars(cost.high)})" if cost.sd else ""),
            cost,
            most,
            kind,
        )
        for kind, each, cost in priced
    ]


def rate_intervals(rows: Sequence[ComparedRow]) -> list[Interval]:
    """Those with a rate, in their order: of accelerators that are compared."""
    rated = [(row, row.rate) for row in rows if row.rate is not None]
    most = max((rate.high for _, rate in rated), default=1.0)
    return [
        _interval(
            row.name,
            number(rate.median) + (f" ({number(rate.low)} to {number(rate.high)})" if rate.sd else ""),
            rate,
            most,
            "eligible" if row.passes else "rejected",
        )
        for row, rate in rated
    ]


def change_intervals(found: Simulated) -> list[Interval]:
    """What changes make of each figure, as a share of it, with no change in the middle of the drawing."""
    rows = relative_changes(found)
    most = max((max(abs(one.low), abs(one.high)) for _, one in rows), default=0.0) or 1.0

    def place(share: float) -> float:
        return (1.0 + share / most) * WIDTH / 2

    return [
        Interval(
            title,
            f"{one.mean:+.0%} ({one.low:+.0%} to {one.high:+.0%})",
            place(one.low),
            place(one.mean),
            place(one.high),
            False,
            "eligible" if one.certain else "rejected",
        )
        for title, one in rows
    ]


def _interval(where: str, text: str, figure: Estimate, most: float, kind: str) -> Interval:
    """most: at the right edge."""
    low, median, high = (min(1.0, value / most) * WIDTH for value in (figure.low, figure.median, figure.high))
    return Interval(where, text, low, median, high, figure.high > most, kind)
