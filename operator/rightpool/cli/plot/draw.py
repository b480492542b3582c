"""Draws a picture, as SVG or PNG. It alone imports matplotlib, which the extra `plot` brings."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, Final

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from rightpool.api.wording import memory_size, short_place
from rightpool.cli.plot.data import Plot, SizeRate
from rightpool.cli.roofline import Roof
from rightpool.cli.trace_summary import HOST

SIZE: Final = (13.0, 16.0)  # inches
_GREY: Final = "0.55"
_PARTS: Final = {
    "compute": "tab:blue",
    "bandwidth": "tab:cyan",
    "chip": "tab:blue",
    "communication": "tab:orange",
    "input": "tab:red",
    "saving": "tab:olive",
    "host": "tab:purple",
}
_KINDS: Final = {"now": "black", "target": "tab:green", "eligible": "tab:blue", "rejected": _GREY}
_COLOURS: Final = "black: now; green: the decision, and the frontier; blue: eligible; grey: ruled out, or not better"
# Offers that are named; of dozens the names would cover each other.
_NAMED: Final = 12
_GIB: Final = float(2**30)
_SHORT: Final = 10.0  # from one end of a logarithmic axis to the other
_BESIDE: Final = 30.0  # factor on the axis of intensity, beside the outermost points and ridges


def draw(shown: Plot, form: str) -> bytes:
    """The file of an explanation's picture. form: svg or png."""

    def fill(figure: Figure) -> None:
        grid = figure.add_gridspec(4, 2)
        drawing: tuple[tuple[Any, Callable[[Any, Plot], None]], ...] = (
            (grid[0, 0], _roofline),
            (grid[0, 1], _sizes),
            (grid[1, 0], _offers),
            (grid[1, 1], _parts),
            (grid[2, 0], _ranks),
            (grid[2, 1], _history),
            (grid[3, :], _memory),
        )
        for place, panel in drawing:
            panel(figure.add_subplot(place), shown)

    return picture(SIZE, shown.title, fill, form)


def picture(size: tuple[float, float], title: str, fill: Callable[[Figure], None], form: str) -> bytes:
    """The file of a figure that `fill` draws. size: width and height in inches. The same figure gives the same SVG."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rightpool", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(title)
        fill(figure)
        file = io.BytesIO()
        figure.savefig(file, format=form, metadata={"Date": None} if form == "svg" else {}, dpi=120)
    return file.getvalue()


def _empty(axes: Any, text: str) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color=_GREY, wrap=True)


def _label(axes: Any, text: str, notes: Sequence[str] = ()) -> None:
    """Of the horizontal axis, with notes below."""
    axes.set_xlabel("\n".join([text, *(note for note in notes if note)]), fontsize=8)


def _colors(shown: Plot) -> dict[str, str]:
    """A pool has the same in each panel."""
    pools = dict.fromkeys([*(roof.pool for roof in shown.roofline.roofs), *shown.sizes])
    return {pool: f"C{number}" for number, pool in enumerate(pools)}


def _plain_numbers(axis: Any) -> None:
    """Of a logarithmic axis: 0.05 and not 5 × 10⁻². Between powers of ten 2 and 5 alone, unless the axis is short."""
    low, high = axis.get_view_interval()
    shown = "123456789" if high < _SHORT * low else "25"
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in shown else ""))


def _roofline(axes: Any, shown: Plot) -> None:
    roofline = shown.roofline
    axes.set_title(f"One chip, {roofline.precision}")
    if not roofline.roofs:
        _empty(axes, "; ".join(roofline.notes) or "no chip has figures for this precision")
        return
    ridges = [roof.ridge for roof in roofline.roofs]
    marks = [*ridges, *(point.intensity for point in roofline.points)]
    low, high = min(marks) / _BESIDE, max(marks) * _BESIDE
    colors = _colors(shown)
    for roof in roofline.roofs:
        axes.plot(*_line(roof, low, high), color=colors[roof.pool], label=_roof_name(roof))
    for point in roofline.points:
        color = colors.get(point.pool, "black")
        errors = None if point.low == point.high else [[point.flops - point.low], [point.high - point.flops]]
        axes.errorbar(
            [point.intensity],
            [point.flops],
            yerr=errors,
            fmt="o",
            color=color,
            markerfacecolor="none" if point.predicted else color,
            capsize=2,
            label=f"{point.where}, {'predicted' if point.predicted else 'measured'}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    _label(axes, "FLOP for each byte of memory traffic", roofline.notes)
    axes.set_ylabel("FLOP/s")
    axes.legend(fontsize=7, loc="lower right")


def _roof_name(roof: Roof) -> str:
    return f"{roof.pool}: {roof.accelerator}{' (measured)' if roof.measured else ''}"


def _line(roof: Roof, low: float, high: float) -> tuple[list[float], list[float]]:
    """The two straight parts of a roof on logarithmic axes."""
    return [low, roof.ridge, high], [roof.at(low), roof.flops, roof.flops]


def _sizes(axes: Any, shown: Plot) -> None:
    axes.set_title("Throughput by size, with 80% intervals")
    if not shown.sizes:
        _empty(axes, "nothing is predicted before the job was measured")
        return
    colors = _colors(shown)
    for pool, rates in shown.sizes.items():
        color = colors[pool]
        chips = [rate.chips for rate in rates]
        axes.plot(chips, [rate.median for rate in rates], color=color, label=pool)
        axes.errorbar(chips, [rate.median for rate in rates], yerr=_errors(rates), fmt="none", ecolor=color, capsize=2)
        seen = [rate for rate in rates if rate.observed]
        axes.plot([rate.chips for rate in seen], [rate.median for rate in seen], "o", color=color, label="_observed")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({rate.chips for rates in shown.sizes.values() for rate in rates})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    _label(axes, "chips", ["dots were measured, the rest is predicted"])
    axes.set_ylabel(f"{shown.unit}/s")
    axes.legend(fontsize=7)
    _plain_numbers(axes.yaxis)


def _errors(rates: Sequence[SizeRate]) -> list[list[float]]:
    return [[rate.median - rate.low for rate in rates], [rate.high - rate.median for rate in rates]]


def _offers(axes: Any, shown: Plot) -> None:
    axes.set_title(f"A million {shown.unit}: cost against time")
    if not shown.offers:
        _empty(axes, "no placement has both a prediction and a price")
        return
    for offer in shown.offers:
        axes.errorbar(
            [offer.hours],
            [offer.dollars],
            yerr=[[offer.dollars - offer.low], [offer.high - offer.dollars]],
            fmt="o",
            color=_KINDS[offer.kind],
            elinewidth=0.6,
            markersize=4,
        )
    frontier = [offer for offer in shown.offers if offer.frontier]
    axes.plot([offer.hours for offer in frontier], [offer.dollars for offer in frontier], "--", color="tab:green", lw=1)
    named = [offer for offer in shown.offers if offer.frontier or offer.kind in ("now", "target")]
    others = [offer for offer in shown.offers if offer not in named]
    for offer in [*named, *others][: max(_NAMED, len(named))]:
        axes.annotate(offer.where, (offer.hours, offer.dollars), xytext=(4, 4), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    free = any(offer.dollars <= 0.0 for offer in shown.offers)  # has no place on a logarithmic axis
    axes.set_yscale("linear" if free else "log")
    axes.set_ylabel("dollars")
    lacking = f"{shown.unpriced} placements lack a prediction or a price" if shown.unpriced else ""
    _label(axes, "hours", [_COLOURS, lacking])
    for axis in (axes.xaxis,) if free else (axes.xaxis, axes.yaxis):
        _plain_numbers(axis)


def _parts(axes: Any, shown: Plot) -> None:
    axes.set_title("Where the time of a step goes")
    if not shown.parts:
        _empty(axes, "not known: no counter tells how long the chip works")
        return
    for row, part in enumerate(shown.parts):
        axes.barh([row], [100.0 * part.share], color=_PARTS[part.kind])
        axes.text(100.0 * part.share + 1.0, row, part.text, va="center")
    axes.set_yticks(range(len(shown.parts)), [part.name for part in shown.parts])
    axes.invert_yaxis()
    axes.set_xlim(0.0, 110.0)
    _label(axes, "% of the step")


def _ranks(axes: Any, shown: Plot) -> None:
    axes.set_title("How ranks differ")
    if not shown.spread:
        _empty(axes, "no trace of all ranks: rightpool trace --all takes one")
        return
    for row, part in enumerate(shown.spread):
        least, median, most = (100.0 * share for share in (part.least, part.median, part.most))
        axes.plot([least, most], [row, row], color=_GREY)
        axes.plot([median], [row], "o", color="black")
        for at, rank, side in ((least, part.least_rank, "right"), (most, part.most_rank, "left")):
            axes.annotate(f" {rank} ", (at, row), ha=side, va="center", fontsize=7)
    axes.set_yticks(range(len(shown.spread)), [part.part for part in shown.spread])
    axes.invert_yaxis()
    axes.set_xlim(-5.0, 105.0)
    _label(axes, "% of the time of a rank", ["from the least to the most, with their ranks; dots are the median"])


def _memory(axes: Any, shown: Plot) -> None:
    axes.set_title("Memory in use, by the newest trace")
    memory = shown.memory
    if memory is None or not memory.timeline:
        _empty(axes, "no trace says it: rightpool trace takes one")
        return
    count = len(memory.timeline)
    levels = [level / _GIB for level in memory.timeline]
    axes.stairs(levels, [100.0 * part / count for part in range(count + 1)], fill=True, color="tab:blue", alpha=0.4)
    peak = memory.peak_bytes / _GIB
    axes.plot([100.0 * memory.at], [peak], "o", color="black", label=f"most: {memory_size(memory.peak_bytes)}")
    for name, size, style in (
        ("held by the framework's allocator", memory.reserved_bytes, "--"),
        ("of the device", memory.capacity_bytes, "-"),
    ):
        if size is not None:
            axes.axhline(size / _GIB, color=_GREY, linestyle=style, label=f"{name}: {memory_size(size)}")
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("GiB more than at the start" if memory.device == HOST else "GiB")
    axes.legend(fontsize=7, loc="lower right")
    _label(axes, "% of the time that was traced", ["" if memory.device is None else memory.device])


def _history(axes: Any, shown: Plot) -> None:
    axes.set_title("Throughput so far")
    if not shown.stretches:
        _empty(axes, "no throughput was measured yet")
        return
    for stretch in shown.stretches:
        hours = [(at - shown.now) / 3600.0 for at in (stretch.start, stretch.end)]
        axes.plot(hours, [stretch.rate] * 2, color="tab:orange" if stretch.moves else "black", linewidth=2)
        if stretch.promised is not None:
            axes.plot(hours, [stretch.promised] * 2, "--", color="tab:green")
        axes.annotate(short_place(stretch.placement), (hours[0], stretch.rate), fontsize=7, va="bottom")
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel(f"{shown.unit}/s")
    _label(axes, "hours from now", ["by the ledger; orange: a move; dashed: what it has promised"])
