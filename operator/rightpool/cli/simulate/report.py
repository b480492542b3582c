"""What a simulation has found, as a table or as an object."""

from __future__ import annotations

from typing import Any, Final

from rightpool.api.units import DAY, write_unix_time
from rightpool.api.wording import how_many
from rightpool.cli.documents import document_head, print_document
from rightpool.cli.simulate.runs import Played, Simulated, value_of
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.simulation.fleet_figures import FIGURES, FigureRange

NOT_SIMULATED: Final = (
    "not simulated: what users would have submitted otherwise, failures and spot interruptions, chips that others held "
    "at times, moves that fail, and prices that change"
)
_SHARES: Final = frozenset({"restartShare"})
_COUNTS: Final = frozenset({"moves", "deadlinesMissed"})


def print_report(found: Simulated, form: str) -> None:
    """form: table, json or yaml."""
    if form == "table":
        show_simulation(found, Page())
    else:
        print_document(simulation_document(found), form)


def simulation_document(found: Simulated) -> dict[str, Any]:
    """The object that the head of the command's module describes."""
    history, check = found.history, found.check
    names = [*FIGURES, *found.pools]
    return {
        **document_head("SimulationReport"),
        "notes": [*found.notes, NOT_SIMULATED],
        "jobs": len(history.records),
        "from": write_unix_time(history.records[0].arrived),
        "to": write_unix_time(max(record.ended for record in history.records)),
        "check": {
            "jobs": check.jobs,
            "moved": check.moved,
            "completion": round(check.completion, 4) if check.jobs else None,
            "chipHours": round(check.chip_hours, 4) if check.jobs else None,
            "nineInTen": round(check.nine_in_ten, 4) if check.jobs else None,
            "planned": {
                "dollars": round(found.off("dollars"), 4),
                "completion": round(found.off("completionHoursMean"), 4),
            },
            "holds": found.holds,
        },
        "asItWas": {
            "jobs": found.was.jobs,
            "unfinished": found.was.left,
            **{name: round(found.was.figures[name], 4) for name in FIGURES},
            "chipHours": {pool: round(value_of(found.was, pool), 3) for pool in found.pools},
        },
        "planned": _played(found.planned, found),
        "whatIf": None if found.what_if is None else _played(found.what_if, found),
        "difference": None
        if found.what_if is None
        else _ranges({name: _known(found.difference(name)) for name in names}, found),
    }


def _known(range_: FigureRange | None) -> FigureRange:
    assert range_ is not None
    return range_


def _played(played: Played, found: Simulated) -> dict[str, Any]:
    ranges = {name: played.figure(name) for name in (*FIGURES, *found.pools)}
    return {"unfinished": played.unfinished, **_ranges(ranges, found)}


def _ranges(ranges: dict[str, FigureRange], found: Simulated) -> dict[str, Any]:
    def one(name: str) -> dict[str, float]:
        each = ranges[name]
        return {"mean": round(each.mean, 4), "low": round(each.low, 4), "high": round(each.high, 4)}

    return {**{name: one(name) for name in FIGURES}, "chipHours": {pool: one(pool) for pool in found.pools}}


# --- table -----------------------------------------------------------------------------------------------------------


def show_simulation(found: Simulated, page: Page) -> None:
    """On a page: the check, then a row a figure."""
    history = found.history
    begin, end = history.records[0].arrived, max(record.ended for record in history.records)
    days = (end - begin) / DAY
    page.line(
        f"{how_many(len(history.records), 'job')} in {days:.1f} days, from {write_unix_time(begin)[:10]} to "
        f"{write_unix_time(end)[:10]}"
    )
    for line in check_lines(found):
        page.line(line)
    page.line()
    columns = [Column(""), Column("AS IT WAS", right=True), Column("PLANNED ANEW", right=True)]
    if found.what_if is not None:
        columns += [Column("WHAT IF", right=True), Column("DIFFERENCE", right=True), Column("80% OF CASES", right=True)]
    titles = {**FIGURES, **{pool: f"chip-hours of {pool}" for pool in found.pools}}
    page.table(columns, [_row(found, name, title) for name, title in titles.items()])
    for what, played in (("as it is", found.planned), ("with the changes", found.what_if)):
        if played is not None and played.unfinished:
            page.remark(
                f"{how_many(played.unfinished, 'job')} found no place or did not end {what}, and are in no completion "
                "time: the pools are too small for them, or not allowed"
            )
    page.notes((*found.notes, NOT_SIMULATED))


def check_lines(found: Simulated) -> list[str]:
    """How far the simulation is off, first that it is where it is."""
    check, lines = found.check, []
    if not found.holds:
        lines.append("DO NOT TRUST what is below by more than its direction: the simulation is off by more than 10%")
    if check.jobs:
        moved = f", {check.moved} of which moved," if check.moved else ""
        lines.append(
            f"check: {how_many(check.jobs, 'job')}{moved} placed as they were end {_signed(check.completion)} later, "
            f"with {_signed(check.chip_hours)} chip-hours; nine in ten within {check.nine_in_ten:.0%}"
        )
    else:
        lines.append("check: no job has a measured rate, so that only planning is compared with what was")
    lines.append(
        f"check: planned anew, as it is now, dollars are {_signed(found.off('dollars'))} and completion times "
        f"{_signed(found.off('completionHoursMean'))} against what was"
    )
    return lines


def _signed(share: float) -> str:
    return f"{share:+.1%}"


def _row(found: Simulated, name: str, title: str) -> list[str]:
    cells = [title, _number(name, value_of(found.was, name)), _number(name, found.planned.figure(name).mean)]
    difference = found.difference(name)
    if found.what_if is None or difference is None:
        return cells
    cells.append(_number(name, found.what_if.figure(name).mean))
    if len(found.what_if.runs) == 1:
        return [*cells, _number(name, difference.mean, signed=True), NOTHING]
    if not difference.certain:
        return [*cells, "none" if abs(difference.mean) < 1e-9 else "not sure", _interval(name, difference)]
    return [*cells, _number(name, difference.mean, signed=True), _interval(name, difference)]


def _interval(name: str, difference: FigureRange) -> str:
    return f"{_number(name, difference.low, signed=True)} to {_number(name, difference.high, signed=True)}"


def _number(name: str, value: float, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if name in _SHARES:
        return f"{value:{sign}.1%}"
    if name in _COUNTS:
        return f"{value:{sign},.0f}"
    if name in FIGURES and name != "dollars":
        return f"{value:{sign}.2f}"
    return f"{value:{sign},.0f}"
