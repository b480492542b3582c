"""Published results: MLPerf's Server scenario from its Offline one, and inference at several batches."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median, stdev

import numpy as np

from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.server import HALF
from rightpool.prediction.serving import SERVED, Server, fixed_shares

LIMITS = {
    "resnet50": 0.015,
    "bert": 0.130,
    "dlrm": 0.030,
    "rnnt": 1.0,
    "ssd-resnet34": 0.100,
    "retinanet": 0.100,
}
"""Seconds for 99 of 100 requests: `mlperf.conf` of github.com/mlcommons/inference at 0edaaf5c, RetinaNet's by its
documentation of v4.0."""

BATCHES = {"resnet50": 2048, "bert": 1024, "dlrm": 1167, "rnnt": 2048, "ssd-resnet34": 64, "retinanet": 32}
"""Of Offline on an A100: gpu_batch_size in closed/NVIDIA/configs of github.com/mlcommons/inference_results_v2.0 and,
for RetinaNet, inference_results_v3.0. DLRM's are 315,000 pairs, about 270 a sample (MLPerf's have 100 to 700). On other
chips a batch is taken to be as long as there, to the nearest power of two."""

TRIED_HALVES = (0.12, HALF, 1.1)
TRIED_SERVED = (0.92, SERVED, 1.0)
"""For `chosen_elsewhere`."""

_A100 = "NVIDIA A100"


@dataclass(frozen=True, slots=True)
class Pair:
    """A system with both scenarios."""

    benchmark: str
    """Without its accuracy."""
    system: str
    """Round, submitter and name."""
    accelerator: str
    """As published."""
    offline: float
    """Samples a second of one accelerator."""
    server: float
    """The same under the limit of latency."""


def pairs(table: Path) -> list[Pair]:
    """All systems of the table that have accelerators and both scenarios."""
    found: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    with table.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["per_accel"] and row["accelerator"]:
                names = ("benchmark", "accelerator", "round", "submitter", "system", "system_type")
                key = tuple(row[name] for name in names)
                found[key][row["scenario"]] = float(row["per_accel"])
    made = []
    for (benchmark, accelerator, *system, _), rates in found.items():
        name = benchmark.removesuffix(".9").removesuffix("-99")
        if name in LIMITS and rates.get("Offline") and rates.get("Server"):
            made.append(Pair(name, "/".join(system), accelerator, rates["Offline"], rates["Server"]))
    return made


@dataclass(frozen=True, slots=True)
class Predicted:
    """Systems of one benchmark."""

    seen: Floats
    """Server over Offline, as published."""
    low: Floats
    """The same as predicted, 10th percentile."""
    median: Floats
    """50th percentile."""
    high: Floats
    """90th percentile."""

    @property
    def errors(self) -> Floats:
        """Of the medians, as shares of what was published."""
        shares: Floats = abs(self.median / self.seen - 1.0)
        return shares


def predicted(found: list[Pair], half: float = HALF, served: float = SERVED) -> dict[str, Predicted]:
    """Server's throughput as the capacity of one replica under the limit, by benchmark. half, served: in place of the
    model's constants."""
    answers = {}
    for name, limit in LIMITS.items():
        mine = [pair for pair in found if pair.benchmark == name]
        usual = [pair.offline for pair in mine if pair.accelerator.startswith(_A100)]
        if not usual:
            continue
        offline = floats([pair.offline for pair in mine])
        powers = np.round(np.log2(BATCHES[name] * offline / median(usual)))
        ends = np.empty((3, len(mine)))
        for power in np.unique(powers):
            rows = powers == power
            batch = max(1, round(2.0**power))
            server = _server(batch, half)
            capacity = server.serve(offline[rows] * served / SERVED, np.zeros(rows.sum()), 1.0, limit).capacity
            ends[:, rows] = np.stack([capacity.low, capacity.median, capacity.high]) / offline[rows]
        answers[name] = Predicted(floats([pair.server for pair in mine]) / offline, *ends)
    return answers


@cache
def _server(batch: int, half: float) -> Server:
    return Server.of(batch, fixed_shares(batch, half=half))


def chosen_elsewhere(found: list[Pair]) -> dict[str, Predicted]:
    """Each benchmark by the pair of constants that has the least median error on all others."""
    tried = [predicted(found, half, served) for half in TRIED_HALVES for served in TRIED_SERVED]

    def elsewhere(answers: dict[str, Predicted], name: str) -> float:
        return float(np.median(np.concatenate([one.errors for other, one in answers.items() if other != name])))

    return {name: min(tried, key=lambda answers: elsewhere(answers, name))[name] for name in tried[0]}


def halves(table: Path) -> list[tuple[str, float, float]]:
    """Of each model with inference at three batches or more: name, largest batch, and the batch whose variable part
    takes as long as the fixed one. Lines through times by batch, with relative errors; medians over its rows."""
    groups: dict[tuple[str, ...], dict[float, set[float]]] = defaultdict(lambda: defaultdict(set))
    with table.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            words = f"{row['section']} {row['task']} {row['column']}"
            if "nfer" in words and "atency" not in row["column"] and row["batch_per_gpu"]:
                names = ("model", "section", "task", "config", "gpu", "count", "precision", "column", "container")
                if float(row["throughput"]) > 0.0:
                    rates = groups[tuple(row[name] for name in names)]
                    rates[float(row["batch_per_gpu"])].add(float(row["throughput"]))
    by_model: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (model, *_), rates in groups.items():
        if len(rates) < 3 or any(len(one) > 1 for one in rates.values()):
            continue  # rows that differ by something that the table does not tell
        batches = np.array(sorted(rates))
        seconds = batches / np.array([next(iter(rates[batch])) for batch in batches])
        slope, fixed = np.polyfit(batches, seconds, 1, w=1.0 / seconds)
        if slope > 0.0 and fixed > 0.0:
            by_model[model.rsplit("/", 1)[-1]].append((float(batches[-1]), float(fixed / slope)))
    return [
        (model, median(largest for largest, _ in rows), median(half for _, half in rows))
        for model, rows in sorted(by_model.items())
    ]


def fitted_half(found: list[tuple[str, float, float]]) -> tuple[float, float]:
    """The model's HALF by these: half = HALF · √B, and the standard deviation of its log."""
    logs = [math.log(half / math.sqrt(largest)) for _, largest, half in found]
    return math.exp(fmean(logs)), stdev(logs)
