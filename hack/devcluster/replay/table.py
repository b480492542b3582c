"""The table of published throughputs and counters, with interpolation between its rows."""

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).resolve().parent.parent / "data" / "replay.csv"


class Kind(StrEnum):
    """The origin of samples_per_second. The row's note has the origin of the other values."""

    PUBLISHED = "published"
    DERIVED = "derived"
    ASSUMED = "assumed"


class NoRow(LookupError):
    """The table has no value for this."""


class BadTable(ValueError):
    """An invalid file. The message names the line."""


@dataclass(frozen=True, slots=True)
class Row:
    """What `chips` chips of `accelerator` do with `workload` together.

    samples_per_second: of the whole job. batch_per_chip: samples a chip takes in one step. memory_*: GiB of a chip;
    power_watts: of a chip; None where nobody says. The rest: shares 0–1, mean over chips or share of the step.
    """

    workload: str
    accelerator: str
    chips: int
    batch_per_chip: int
    samples_per_second: float
    chip_busy: float | None
    compute_active: float | None
    matrix_active: float | None
    memory_bandwidth: float | None
    memory_used_gib: float | None
    memory_total_gib: float
    exposed_communication: float
    input_wait: float
    power_watts: float | None
    kind: Kind
    source: str
    read: str
    note: str


_RATIOS: Final = (
    "chip_busy",
    "compute_active",
    "matrix_active",
    "memory_bandwidth",
    "exposed_communication",
    "input_wait",
)
_OPTIONAL: Final = (
    "chip_busy",
    "compute_active",
    "matrix_active",
    "memory_bandwidth",
    "memory_used_gib",
    "power_watts",
)
_REQUIRED: Final = ("samples_per_second", "memory_total_gib", "exposed_communication", "input_wait")
_BLENDED: Final = (*_RATIOS, "memory_used_gib", "power_watts")


class Table:
    """Rows by workload and accelerator, in the order of chips."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._series: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            self._series.setdefault((row.workload, row.accelerator), []).append(row)
        for series in self._series.values():
            series.sort(key=lambda row: row.chips)
            for first, second in pairwise(series):
                if first.chips == second.chips:
                    raise BadTable(f"two rows for {first.workload} on {first.chips} chips of {first.accelerator}")
                if first.batch_per_chip != second.batch_per_chip:
                    raise BadTable(f"{first.workload} on {first.accelerator} has two batches per chip")

    @classmethod
    def read(cls, path: Path = TABLE) -> "Table":
        with path.open(encoding="utf-8", newline="") as file:
            return cls(_parse(number, record) for number, record in enumerate(csv.DictReader(file), start=2))

    @property
    def rows(self) -> list[Row]:
        return [row for series in self._series.values() for row in series]

    def at(self, workload: str, accelerator: str, chips: int) -> Row:
        """A row, or an interpolation: throughput is linear in logarithms, other values in the logarithm of chips.

        Raises NoRow outside the rows; its message names the available ones.
        """
        series = self._series.get((workload, accelerator))
        if series is None:
            known = ", ".join(sorted(f"{name} on {chip}" for name, chip in self._series))
            raise NoRow(f"no row for {workload} on {accelerator}; there are: {known}")
        for row in series:
            if row.chips == chips:
                return row
        for low, high in pairwise(series):
            if low.chips < chips < high.chips:
                return _between(low, high, chips)
        raise NoRow(
            f"no row for {workload} on {chips} chips of {accelerator}: "
            f"there are rows from {series[0].chips} to {series[-1].chips}"
        )


def _between(low: Row, high: Row, chips: int) -> Row:
    weight = math.log(chips / low.chips) / math.log(high.chips / low.chips)
    blended: dict[str, float | None] = {}
    for name in _BLENDED:
        first, second = getattr(low, name), getattr(high, name)
        blended[name] = None if first is None or second is None else first + weight * (second - first)
    return replace(
        low,
        chips=chips,
        samples_per_second=low.samples_per_second * (high.samples_per_second / low.samples_per_second) ** weight,
        kind=Kind.DERIVED,
        note=f"between {low.chips} and {high.chips} chips",
        **blended,  # type: ignore[arg-type]
    )


def _parse(line: int, record: Mapping[str, str | None]) -> Row:
    expected = [field.name for field in fields(Row)]
    if list(record) != expected or None in record.values():
        raise BadTable(f"line {line}: the columns must be {','.join(expected)}")
    text = {name: (value or "").strip() for name, value in record.items()}
    try:
        numbers: dict[str, float | None] = {name: float(text[name]) for name in _REQUIRED}
        numbers |= {name: float(text[name]) if text[name] else None for name in _OPTIONAL}
        row = Row(
            workload=text["workload"],
            accelerator=text["accelerator"],
            chips=int(text["chips"]),
            batch_per_chip=int(text["batch_per_chip"]),
            kind=Kind(text["kind"]),
            source=text["source"],
            read=text["read"],
            note=text["note"],
            **numbers,  # type: ignore[arg-type]
        )
    except ValueError as error:
        raise BadTable(f"line {line}: {error}") from None
    for name in ("workload", "accelerator", "source", "read", "note"):
        if not text[name]:
            raise BadTable(f"line {line}: {name} is empty")
    if row.chips < 1 or row.batch_per_chip < 1 or row.samples_per_second <= 0:
        raise BadTable(f"line {line}: chips, batch_per_chip and samples_per_second must be above 0")
    for name in _RATIOS:
        value = getattr(row, name)
        if value is not None and not 0 <= value <= 1:
            raise BadTable(f"line {line}: {name} is {value}, not a share between 0 and 1")
    return row
