"""Recorded demand and published measurements of servers, as files of one directory."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rightpool.prediction.columns import Floats, floats
from rightpool.profiles.demand import SLOT


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of the table."""

    measure: str
    """What was asked."""
    who: str
    """Of what: a policy, a model, a system."""
    figures: dict[str, float | None]
    """By name."""
    bar: str | None = None
    """What must be reached."""
    ok: bool | None = None
    """Whether it is; None where nothing is judged."""

    def __str__(self) -> str:
        cells = "  ".join(f"{name} {'–' if found is None else f'{found:.4g}'}" for name, found in self.figures.items())
        verdict = "" if self.ok is None else f"  [{self.bar}: {'ok' if self.ok else 'MISSED'}]"
        return f"{self.measure:34} {self.who:46} {cells}{verdict}"


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Of a table, packed or not."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests as they came."""

    name: str
    """Of the file."""
    counts: Floats
    """In each SLOT."""
    arrivals: Floats | None
    """Seconds of each; None where the trace has counts alone."""
    tokens: tuple[Floats, Floats] | None
    """Of prompt and answer of each; None where it has none."""


def trace(path: Path) -> Trace:
    """From `seconds,requests`, or from one row a request with its seconds."""
    table = list(rows(path))
    name = path.name.split(".")[0]
    seconds = floats([float(row["seconds"]) for row in table])
    if "requests" in table[0]:
        place = np.round(seconds / SLOT).astype(np.int64)
        counts = np.full(int(place.max()) + 1, np.nan)
        counts[place] = [float(row["requests"]) for row in table]
        return Trace(name, counts, None, None)
    order = np.argsort(seconds, kind="stable")
    columns = [floats([float(row[key]) for row in table])[order] for key in ("context_tokens", "generated_tokens")]
    counts = np.bincount((seconds // SLOT).astype(np.int64)).astype(np.float64)
    return Trace(name, counts, seconds[order], (columns[0], columns[1]))


def traces(directory: Path) -> list[Trace]:
    """All of a directory."""
    found = sorted(path for kind in ("azure*", "twitter*", "trace*") for path in directory.glob(f"{kind}.csv*"))
    return [trace(path) for path in found]
