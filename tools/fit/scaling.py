"""Published throughput of the same work on several numbers of chips, in the terms of the catalog."""

from __future__ import annotations

import csv
import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import Catalog
from tools.fit.throughput import measured, named

Row = dict[str, str]

FILES = ("lambda_train.csv", "nvidia_dle.csv", "mpt_llmfoundry.csv")


def table(path: Path) -> list[Row]:
    """A CSV file with a header; empty where it is not there."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@dataclass(slots=True)
class Scaling:
    """Throughput of the same work by the number of chips, the batch of each chip the same."""

    source: str
    chip: Accelerator
    rates: dict[int, float]


LATE_GAIN = 0.15
# Rows alike in all that tells jobs apart, at one size: where rates differ by such a factor, they are of several jobs.
SEVERAL_JOBS = 3.0


def gains_late(scaling: Scaling) -> bool:
    """Whether a later doubling within a node gains more than the one before it, by more than LATE_GAIN in the exponent
    of the chips: sharing costs do not fall, so one of the rates is of something else, or off."""
    sizes = [size for size in scaling.rates if size <= 8]
    rates = scaling.rates
    slopes = [math.log(rates[b] / rates[a]) / math.log(b / a) for a, b in itertools.pairwise(sizes)]
    return any(later - earlier > LATE_GAIN for earlier, later in itertools.pairwise(slopes))


def rates_by_size(
    directory: Path, catalog: Catalog, unknown: Counter[str]
) -> tuple[dict[tuple[str, ...], dict[int, list[float]]], dict[str, Accelerator]]:
    """Rates by (source, chip, what else tells jobs apart) and by number of chips, and the chips by key. What the
    catalog lacks is counted."""
    found: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    chips: dict[str, Accelerator] = {}
    for source, key, gpu, size, text in _rows(directory):
        chip, rate, count = named(catalog, gpu), measured(text), int(size) if size.isdecimal() else 0
        if chip is None:
            unknown[f"{gpu} is not in the catalog"] += 1
        elif rate is None or count < 1:
            unknown[f"no number for the rate or size in {source}"] += 1
        else:
            chips[chip.key] = chip
            found[source, chip.key, *key][count].append(rate)
    return found, chips


def scalings(directory: Path, catalog: Catalog, unknown: Counter[str]) -> list[Scaling]:
    """All that the files of the directory have at several sizes. Rows that nothing tells apart are left out and counted
    where they are of several jobs."""
    found, chips = rates_by_size(directory, catalog, unknown)
    made = []
    for (source, chip_key, *_), sizes in found.items():
        if any(max(rates) > SEVERAL_JOBS * min(rates) for rates in sizes.values()):
            unknown[f"{source} does not tell jobs on {chip_key} apart"] += sum(map(len, sizes.values()))
        elif len(sizes) > 1:
            rates = {count: statistics.median(rates) for count, rates in sorted(sizes.items())}
            made.append(Scaling(source, chips[chip_key], rates))
    return made


def _rows(directory: Path) -> Iterator[tuple[str, tuple[str, ...], str, str, str]]:
    for row in table(directory / FILES[0]):
        # Their eight-chip rows of this model are super-linear: a measuring error of the source.
        if row["mode"] == "train" and not row["model"].startswith("bert_base"):
            key = (row["stack"], row["model"], row["precision"])
            yield "lambda", key, row["gpu"], row["count"], row["throughput"]
    for row in table(directory / FILES[1]):
        if row["section"] == "train" and row["throughput"] and row["count"].isdigit():
            columns = ("model", "task", "config", "batch_per_gpu", "precision", "column", "src")
            yield "dle", tuple(row[name] for name in columns), row["gpu"], row["count"], row["throughput"]
    for row in table(directory / FILES[2]):
        parts = ("model", "seq_len", "micro_batch", "precision", "sharding", "act_ckpt")
        yield "mpt", tuple(row[part] for part in parts), row["gpu"], row["count"], row["tokens_per_s"]
