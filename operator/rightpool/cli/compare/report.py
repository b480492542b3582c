"""A comparison as a table, as Markdown for a record of the decision, and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rightpool.api.estimate import Estimate
from rightpool.api.wording import dollars, number, share
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.compare.rows import Checked, ComparedRow
from rightpool.cli.compare.score import Change, Weights
from rightpool.cli.documents import document_head, print_document
from rightpool.cli.table import NOTHING, Column, Page, dollar_cell
from rightpool.hardware.ownership import Sourced

_ANSWERS: Final = {True: "passed", False: "FAILED", None: "not known"}


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """A comparison."""

    subject: str
    """The job, or what was run."""
    weights: Weights
    """Of the score."""
    rows: tuple[ComparedRow, ...]
    """In the order in which they were asked for."""
    scores: Mapping[str, float]
    """By name, of those that have one."""
    changes: tuple[Change, ...]
    """What would make another one the first, the nearest first."""
    notes: tuple[str, ...]
    """What could not be read, as sentences."""

    @property
    def ranked(self) -> list[ComparedRow]:
        """The best first, then those without a score."""
        return sorted(self.rows, key=lambda row: (not row.passes, -self.scores.get(row.name, 0.0)))


def print_compared(found: ComparisonReport, form: str) -> None:
    """form: table, json or markdown."""
    if form == "json":
        print_document(document(found), form)
    elif form == "markdown":
        sys.stdout.write(_markdown(found))
    else:
        show_comparison(found, Page())


# --- for people ------------------------------------------------------------------------------------------------------


def _columns(found: ComparisonReport) -> tuple[Column, ...]:
    unit = found.ranked[0].unit if found.rows else WorkUnit.SAMPLES
    counted = unit.value.upper()
    return (
        Column("ACCELERATOR"),
        Column("CHIPS", right=True),
        Column(f"{counted}/S", right=True),
        Column("80% INTERVAL", drop=3),
        Column("HOW KNOWN", drop=2),
        Column("GATES"),
        Column(f"$/M {counted}", right=True),
        Column(f"KWH/M {counted}", right=True, drop=1),
        Column("KG CO2/M", right=True, drop=4),
        Column("SCORE", right=True),
    )


def _cells(found: ComparisonReport, row: ComparedRow) -> list[str]:
    rate, failed = row.rate, [one.gate for one in row.checks if one.passed is False]
    unknown = [one.gate for one in row.checks if one.passed is None]
    gates = f"fails {', '.join(failed)}" if failed else f"passes but for {', '.join(unknown)}" if unknown else "passes"
    score = found.scores.get(row.name)
    return [
        row.name,
        str(row.chips),
        NOTHING if rate is None else number(rate.median),
        NOTHING if rate is None else f"{number(rate.low)} to {number(rate.high)}",
        row.origin or NOTHING,
        gates,
        dollar_cell(row.dollars),
        NOTHING if row.kwh is None else number(row.kwh),
        NOTHING if row.kilograms is None else number(row.kilograms),
        NOTHING if score is None else f"{score:.0f}",
    ]


def _gate_cells(row: ComparedRow, one: Checked) -> list[str]:
    return [row.name, one.gate, _ANSWERS[one.passed], one.evidence]


_GATES: Final = (Column("ACCELERATOR"), Column("GATE"), Column("SAYS"), Column("WHY", wraps=True))
_COSTS: Final = (Column("ACCELERATOR"), Column("$/CHIP-HOUR", right=True), Column("FROM", wraps=True))


def _cost_cells(row: ComparedRow) -> list[str]:
    owned = row.owned
    parts = []
    if owned.rented is not None:
        parts.append(f"rented for {dollars(owned.rented.value)} ({owned.rented.source})")
    elif owned.bought is not None:
        parts.append(
            f"bought for {dollars(owned.bought.value)} ({owned.bought.source}), over {owned.months:g} months, "
            f"{share(owned.utilization)} of them at work"
        )
    else:
        parts.append("nobody says what it costs: write perChipHour or capital into the file of costs")
    if owned.monthly:
        parts.append(f"upkeep and uplink {dollars(owned.monthly)} a month")
    if (kilowatts := owned.kilowatts(row.load)) is None:
        parts.append("its power is not known: write watts into the file of costs")
    elif owned.watts is not None:
        bill = "" if owned.rented is not None else f" at {dollars(owned.tariff)} a kWh"
        parts.append(f"{kilowatts:.3g} kW with PUE {owned.pue:g}{bill} ({row.load_source})")
    if owned.porting:
        parts.append(
            f"porting for {dollars(owned.porting)} over {number(owned.million_samples)} million {row.unit.plural}"
        )
    return [row.name, dollar_cell(owned.dollars_an_hour(row.load)), "; ".join(parts)]


def _sections(found: ComparisonReport) -> list[tuple[str, Sequence[Column], list[list[str]]]]:
    gates = [_gate_cells(row, one) for row in found.ranked for one in row.checks]
    return [
        ("Gates", _GATES, gates),
        ("What it costs", _COSTS, [_cost_cells(row) for row in found.ranked]),
    ]


def _sentences(found: ComparisonReport) -> list[str]:
    if found.changes:
        return [change.text for change in found.changes]
    if len(found.scores) > 1:
        return ["no single figure does, ten times as large or as small, nor a rate within its interval"]
    return ["fewer than two pass the gates with all figures known: there is no order to change"]


def _weights_text(weights: Weights) -> str:
    named = asdict(weights)
    return ", ".join(f"{name} {value / sum(named.values()):.0%}" for name, value in named.items() if value)


def show_comparison(found: ComparisonReport, page: Page) -> None:
    """As tables, and sentences below."""
    page.line(f"{found.subject}; score of 100 by {_weights_text(found.weights)}", "bold")
    page.line()
    page.table(_columns(found), [_cells(found, row) for row in found.ranked])
    for title, columns, rows in _sections(found):
        page.heading(title)
        page.table(columns, rows, indented=True)
    page.heading("What would change the order")
    for text in _sentences(found):
        page.indented(text)
    page.notes(found.notes)


def _markdown(found: ComparisonReport) -> str:
    lines = [f"**{found.subject}**; score of 100 by {_weights_text(found.weights)}", ""]
    lines += _grid(_columns(found), [_cells(found, row) for row in found.ranked])
    for title, columns, rows in _sections(found):
        lines += ["", f"**{title}**", "", *_grid(columns, rows)]
    lines += ["", "**What would change the order**", "", *(f"- {text}" for text in _sentences(found))]
    lines += ["", *(f"- {note}" for note in found.notes)] if found.notes else []
    return "\n".join(lines) + "\n"


def _grid(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    head = [column.title for column in columns]
    marks = ["---:" if column.right else "---" for column in columns]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in (head, marks, *rows)]


# --- for programs ----------------------------------------------------------------------------------------------------


def document(found: ComparisonReport) -> dict[str, Any]:
    """The object that the head of command.py describes."""
    return {
        **document_head("Comparison"),
        "subject": found.subject,
        "weights": asdict(found.weights),
        "rows": [_row(found, row) for row in found.ranked],
        "changes": [
            {
                "figure": change.figure,
                "now": change.now,
                "at": change.at,
                "instead": change.instead,
                "message": change.text,
            }
            for change in found.changes
        ],
        "notes": list(found.notes),
    }


def _row(found: ComparisonReport, row: ComparedRow) -> dict[str, Any]:
    owned = row.owned
    return {
        "name": row.name,
        "accelerator": row.chip.key,
        "chips": row.chips,
        "rate": None if row.rate is None else _range(row.rate),
        "unit": row.unit.value,
        "origin": row.origin or None,
        "checks": [{"gate": one.gate, "passed": one.passed, "evidence": one.evidence} for one in row.checks],
        "passes": row.passes,
        "dollarsPerMillion": row.dollars,
        "kwhPerMillion": row.kwh,
        "kgCo2PerMillion": row.kilograms,
        "score": found.scores.get(row.name),
        "costs": {
            "dollarsPerChipHour": owned.dollars_an_hour(row.load),
            "bought": _sourced(owned.bought),
            "rented": _sourced(owned.rented),
            "watts": _sourced(owned.watts),
            "load": {"share": row.load, "source": row.load_source},
            "porting": None if owned.porting is None else owned.porting / owned.million_samples,
        },
    }


def _range(rate: Estimate) -> dict[str, float]:
    return {"median": rate.median, "low": rate.low, "high": rate.high}


def _sourced(figure: Sourced | None) -> dict[str, Any] | None:
    return None if figure is None else {"value": figure.value, "source": figure.source}
