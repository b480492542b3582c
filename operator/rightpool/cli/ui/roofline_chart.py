"""The roofline of a job as a drawing with logarithmic axes: lengths are in units of the drawing's view box."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rightpool.api.wording import prefixed, share
from rightpool.cli.roofline import Roof, RooflinePlot, RooflinePoint

WIDTH: Final = 1000.0
LEFT: Final = 90.0
"""Where the vertical axis stands; what is left of it is for its labels."""
BOTTOM: Final = 360.0
"""Where the horizontal axis lies; what is below it is for its labels."""
_MARGIN: Final = 10.0
_BESIDE: Final = 10.0  # factor on both axes, beside the outermost points and ridges
_LABELS: Final = 8  # on an axis at most
_ABOVE: Final = 8.0  # of a roof, to the base line of its name
_ASIDE: Final = 12.0  # of a mark
_LINE: Final = 17.0  # height of a line of text


@dataclass(frozen=True, slots=True)
class Label:
    """A word in the drawing, kept clear of the other ones."""

    text: str
    """What it says."""
    x: float
    """Where it begins; of a line where it ends."""
    y: float
    """Its base line, from the top."""


@dataclass(frozen=True, slots=True)
class RoofLine:
    """The roof of one pool's chip."""

    pool: str
    """The AcceleratorPool's name."""
    text: str
    """The chip and its figures."""
    points: str
    """Of an SVG polyline."""
    own: bool
    """Whether the job is there."""
    label: Label
    """Its name, at the right end of the line."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The job on one chip."""

    where: str
    """The placement, for a reader."""
    x: float
    """In units of the drawing, as y is."""
    y: float
    """Of the FLOP/s, from the top."""
    top: float
    """See `bottom`."""
    bottom: float
    """Ends of the 80% interval; both are y where it was measured."""
    predicted: bool
    """Whether it is another chip than the job has."""
    intensity: str
    """For a reader."""
    rate: str
    """For a reader."""
    of_roof: str
    """Share of what the chip can do at this intensity."""
    label: Label
    """The placement, beside the mark."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A power of ten on an axis."""

    at: float
    """In units of the drawing."""
    text: str
    """The value, for a reader."""


@dataclass(frozen=True, slots=True)
class RooflineChart:
    """All that is drawn."""

    precision: str
    """The job's class of precision, for a reader."""
    lines: tuple[RoofLine, ...]
    """One a pool whose chip has figures."""
    marks: tuple[Mark, ...]
    """The job's own first."""
    across: tuple[Tick, ...]
    """Of FLOP for each byte."""
    up: tuple[Tick, ...]
    """Of FLOP/s."""
    notes: tuple[str, ...]
    """What is left out, and why."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """From a logarithm to a length."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0.0), 1.0) * (self.end - self.start)

    def ticks(self) -> Iterator[Tick]:
        powers = range(math.ceil(self.low), math.floor(self.high) + 1)
        for power in powers[:: max(1, math.ceil(len(powers) / _LABELS))]:
            yield Tick(self.place(10.0**power), prefixed(10.0**power))


def roofline_chart(shown: RooflinePlot) -> RooflineChart | None:
    """The drawing; None where no chip has figures."""
    if not shown.roofs:
        return None
    across = _axis([*(roof.ridge for roof in shown.roofs), *(each.intensity for each in shown.points)], LEFT, WIDTH)
    ends = 10.0**across.low, 10.0**across.high
    rates = [*(roof.flops for roof in shown.roofs), *(each.low for each in shown.points if each.low > 0.0)]
    up = _axis(rates, BOTTOM, 0.0)
    roofs = {roof.pool: roof for roof in shown.roofs}
    names = _apart([up.place(roof.flops) - _ABOVE for roof in shown.roofs])
    sides = _apart([up.place(each.flops) + _LINE / 3.0 for each in shown.points])
    return RooflineChart(
        precision=shown.precision,
        lines=tuple(
            RoofLine(
                pool=roof.pool,
                text=f"{roof.pool}: {roof.accelerator}, at most {prefixed(roof.flops)}FLOP/s and "
                f"{prefixed(roof.bandwidth)}B/s, {'calibrated' if roof.measured else 'by the catalog'}",
                points=_polyline(roof, ends, across, up),
                own=bool(shown.points) and roof.pool == shown.points[0].pool,
                label=Label(roof.pool, WIDTH - _MARGIN, y),
            )
            for roof, y in zip(shown.roofs, names, strict=True)
        ),
        marks=tuple(
            _mark(each, roofs.get(each.pool), across, up, y) for each, y in zip(shown.points, sides, strict=True)
        ),
        across=tuple(across.ticks()),
        up=tuple(up.ticks()),
        notes=shown.notes,
    )


def _axis(values: Sequence[float], start: float, end: float) -> _Axis:
    low, high = math.log10(min(values) / _BESIDE), math.log10(max(values) * _BESIDE)
    inner = math.copysign(_MARGIN, end - start)
    return _Axis(low, high, start, end - inner)


def _polyline(roof: Roof, ends: tuple[float, float], across: _Axis, up: _Axis) -> str:
    # It enters the drawing at its lower edge: below that the axis has no place for it.
    begin = max(ends[0], 10.0**up.low / roof.bandwidth)
    corners = [(x, roof.at(x)) for x in (begin, roof.ridge, ends[1])]
    return " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in corners)


def _apart(wanted: Sequence[float]) -> list[float]:
    """Base lines from the top, each a line of text from the others and within the drawing, near where they should be.

    What has no room below is moved up.
    """
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    placed = list(wanted)
    lowest = _LINE
    for index in order:
        placed[index] = lowest = max(wanted[index], lowest)
        lowest += _LINE
    highest = BOTTOM - _LINE / 3.0
    for index in reversed(order):
        placed[index] = highest = min(placed[index], highest)
        highest -= _LINE
    return placed


def _mark(point: RooflinePoint, roof: Roof | None, across: _Axis, up: _Axis, label: float) -> Mark:
    x = across.place(point.intensity)
    return Mark(
        where=point.where,
        x=x,
        y=up.place(point.flops),
        top=up.place(point.high),
        bottom=up.place(point.low) if point.low > 0.0 else up.start,
        predicted=point.predicted,
        intensity=f"{point.intensity:.3g}",
        rate=f"{prefixed(point.flops)}FLOP/s",
        of_roof="-" if roof is None else share(point.flops / roof.at(point.intensity)),
        label=Label(f"{point.where}{' (predicted)' if point.predicted else ' (measured)'}", x + _ASIDE, label),
    )
