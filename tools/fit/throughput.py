"""Published throughput of the same work on several chips: `cross_accelerator.csv` in the terms of the catalog."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.precision import UNKNOWN_PRECISION, class_of, peak

FILE = "cross_accelerator.csv"


@dataclass(frozen=True, slots=True)
class Work:
    """One workload of a source, on several chips."""

    source: str
    name: str
    precision: str
    """As the file has it."""
    comparison: Comparison

    @property
    def rates(self) -> dict[str, float]:
        """Logarithms of rates by the key of the chip."""
        chips = (chip.key for chip in self.comparison.chips)
        return dict(zip(chips, self.comparison.logs, strict=True))


@dataclass(slots=True)
class Published:
    """A file as read."""

    works: list[Work] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    """Rows that are left out, by what they lack: a chip of the catalog, a precision of that chip, a rate."""


def number(text: str) -> float | None:
    """What a cell says; None where that is no finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def measured(text: str) -> float | None:
    """A rate of a table; None where it is no positive number."""
    rate = number(text)
    return rate if rate is not None and rate > 0.0 else None


def named(catalog: Catalog, name: str) -> Accelerator | None:
    """The chip of this name: a key of the catalog, or one without its memory where that is not ambiguous."""
    wanted = _plain(name)
    exact = [chip for key, chip in catalog.accelerators.items() if _plain(key) == wanted]
    if exact:
        return exact[0]
    short = [chip for key, chip in catalog.accelerators.items() if _plain(re.sub(r"-\d+GB$", "", key)) == wanted]
    return short[0] if len(short) == 1 else None


def published(directory: Path, catalog: Catalog | None = None) -> Published:
    """What the directory has; nothing where the file is not there."""
    known, read = catalog or load_catalog(), Published()
    path = directory / FILE
    if not path.is_file():
        return read
    rates: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    chips: dict[str, Accelerator] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            chip = named(known, row["gpu"])
            if chip is None:
                read.unknown[f"{row['gpu']} is not in the catalog"] += 1
            elif class_of(row["pc"]) == UNKNOWN_PRECISION or peak(chip, class_of(row["pc"])) is None:
                read.unknown[f"{row['gpu']} has no peak rate in {row['pc']}"] += 1
            elif (rate := measured(row["thr"])) is None:
                read.unknown[f"no number for the rate in {FILE}"] += 1
            else:
                chips[chip.key] = chip
                rates[row["ds"], row["wl"], row["pc"]][chip.key].append(rate)
    for (source, name, precision), found in rates.items():
        if len(found) > 1:
            logs = tuple(math.log(statistics.median(values)) for values in found.values())
            one = Comparison(tuple(chips[key] for key in found), class_of(precision), logs)
            read.works.append(Work(source, name, precision, one))
    return read


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
