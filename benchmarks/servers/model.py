"""What the model is off by: p99 under a trace, time per token on another system, Server from Offline, its certainty."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.servers.data import Line, Trace, rows
from benchmarks.serving.published import pairs, predicted
from rightpool.prediction.batch_queue import BatchQueue
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.replay import latencies, tail
from rightpool.prediction.server import LoadLine, fit, token_speedup

UTILISATIONS: Final = (0.3, 0.5, 0.6, 0.7)
SHAPES: Final = ((16, 0.4), (64, 0.15), (4, 0.6))
"""Largest batch, and the share of a full one's time that is fixed."""
SURE: Final = (1e-12, 1e-12, 0.0)
Z90: Final = 1.2816

CERTAIN: Final = "said to hold with 90%, and hold"
_LOADS: Final = (("Batch Size", "concurrency"), ("Latency", "tpot_ms"))
_CHANGES: Final = ("Batch Size", "concurrency", "Latency", "tpot_ms", "Throughput", "ttft_ms")

BANDWIDTH: Final = {"h100_sxm": 3352.0, "h200_sxm": 4800.0, "b200_sxm": 7700.0, "b300_sxm": 7700.0, "gb200": 8000.0}
"""GB/s by the catalog."""


def tails(found: Sequence[Trace]) -> list[Line]:
    """p99 of a server that is known, under the requests themselves against their counts."""
    errors, lines = [], []
    for one in found:
        if one.arrivals is None:
            continue
        for batch, fixed in SHAPES:
            mean = len(one.arrivals) / float(one.arrivals[-1])
            curve = BatchQueue(batch, (fixed,)).curve(0.99)
            row, poisson = [], []
            for busy in UTILISATIONS:
                full = busy * batch / mean
                line = LoadLine(full * fixed, full * (1.0 - fixed) / batch, SURE, batch, batch)
                true = float(np.quantile(latencies(one.arrivals, line), 0.99))
                row.append(tail(line, one.counts, np.ones(len(one.counts)), 0.99).whole / true - 1.0)
                poisson.append(full * float(np.interp(busy, curve.utilisation, curve.latency[0])) / true - 1.0)
            errors += row
            figures: dict[str, float | None] = {
                f"{busy:.0%}": error for busy, error in zip(UTILISATIONS, row, strict=True)
            }
            figures |= {"Poisson, least": min(poisson), "most": max(poisson)}
            lines.append(Line("p99 under a trace, error", f"{one.name}, batch {batch}, fixed {fixed:.0%}", figures))
    if errors:
        inside = float(np.mean(np.abs(errors) <= 0.10))
        lines.append(Line("p99 under a trace", f"{len(errors)} cases", {"within 10%": inside}, ">= 90%", inside >= 0.9))
    return lines


# --- tokens on another system ----------------------------------------------------------------------------------------

_PROGRAM: Final = (
    "model",
    "backend",
    "backend_version",
    "precision",
    "input_tokens",
    "output_tokens",
    "concurrency",
    "tensor_parallel",
    "expert_parallel",
    "attention_dp",
)


def token_pairs(path: Path) -> list[tuple[str, str, str, float]]:
    """Model, two systems and the log of the times per token there, of the same program at the same concurrency."""
    groups: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows(path):
        if row["tpot_ms"] and row["system"] in BANDWIDTH:
            groups[tuple(row[name] for name in _PROGRAM)][row["system"]].append(float(row["tpot_ms"]))
    made = []
    for program, by_system in groups.items():
        for one, other in combinations(sorted(by_system), 2):
            ratio = math.log(float(np.median(by_system[other])) / float(np.median(by_system[one])))
            made.append((program[0], one, other, ratio))
            made.append((program[0], other, one, -ratio))
    return made


def tokens(path: Path) -> list[Line]:
    """Errors of the time per token on the other system; the operator's constants were not fitted on these."""
    found = token_pairs(path)
    faster, doubt = np.array([token_speedup(BANDWIDTH[one], BANDWIDTH[other]) for _, one, other, _ in found]).T
    ours = -np.log(faster)
    wide = floats([-math.log(BANDWIDTH[other] / BANDWIDTH[one]) for _, one, other, _ in found])
    seen = floats([ratio for *_, ratio in found])
    constant = np.array([_of_others(found, *case[:3]) for case in found])
    median, high = _quantiles(np.abs(np.exp(ours - seen) - 1.0))
    inside = float(np.mean(np.abs(seen - ours) <= Z90 * doubt))
    name = "time per token, other system"
    apart = np.abs(wide) > 0.05
    return [
        Line(
            name, f"{len(found)} pairs", {"median": median, "p90": high}, "<= 9 / 20%", median <= 0.09 and high <= 0.2
        ),
        Line(name, f"of these {int(apart.sum())} with other bandwidth", _both(ours[apart], seen[apart])),
        Line(name, "inside 80%", {"share": inside}, "75-90%", 0.75 <= inside <= 0.90),
        Line(name, "baseline: bandwidth, where it differs", _both(wide[apart], seen[apart])),
        Line(name, "baseline: one ratio of other models, there", _both(constant[apart], seen[apart])),
    ]


def _of_others(found: Iterable[tuple[str, str, str, float]], model: str, one: str, other: str) -> float:
    others = [ratio for name, a, b, ratio in found if name != model and (a, b) == (one, other)]
    return float(np.median(others)) if others else 0.0


# --- MLPerf ----------------------------------------------------------------------------------------------------------


def server_from_offline(path: Path) -> list[Line]:
    """MLPerf's Server rate from the same system's Offline rate."""
    answers = predicted(pairs(path))
    median, high = _quantiles(np.concatenate([one.errors for one in answers.values()]))
    ok = median <= 0.09 and high <= 0.40
    return [Line("MLPerf Server from Offline", "as shipped", {"median": median, "p90": high}, "<= 9 / 40%", ok)]


# --- certainty -------------------------------------------------------------------------------------------------------


def calibration(latencies_by_batch: Path, tokens_by_concurrency: Path) -> list[Line]:
    """Real series of seconds by load, each load left out in turn: with 90% it takes no longer than what is said.

    The highest load is beyond what was seen then, twice as high in most: the operator refuses that (LoadExtrapolated).
    """
    lines, inside = [], []
    for path in (latencies_by_batch, tokens_by_concurrency):
        counted: dict[str, list[bool]] = {"inside": [], "beyond what was seen": []}
        for by_load in _series(path):
            loads = sorted(by_load)
            for left in loads[1:] if len(loads) >= 4 else ():
                used = floats([load for load in loads if load != left])
                line = fit(used, floats([by_load[load] for load in used.tolist()]), np.ones(len(used)), loads[-1])
                limit = line.seconds(left) * math.exp(Z90 * line.sd(left))
                counted["beyond what was seen" if left == loads[-1] else "inside"].append(by_load[left] <= limit)
        inside += counted["inside"]
        for where, held in counted.items():
            share = float(np.mean(held)) if held else None
            lines.append(Line(CERTAIN, f"{path.name.split('.')[0]}, {where}, {len(held)}", {"share": share}))
    share = float(np.mean(inside))
    lines.append(
        Line(CERTAIN, f"{len(inside)} inside what was seen", {"share": share}, "85-95%", 0.85 <= share <= 0.95)
    )
    return lines


def _series(path: Path) -> list[dict[float, float]]:
    """Seconds by load, of one program on one system each."""
    found: dict[tuple[str, ...], dict[float, float]] = defaultdict(dict)
    for row in rows(path):
        load, seconds = (row.get(one) or row.get(other) for one, other in _LOADS)
        if load and seconds:
            rest = tuple(value for name, value in row.items() if name not in _CHANGES)
            try:
                found[rest][float(load)] = float(seconds)
            except ValueError:
                continue
    return list(found.values())


def _both(predicted_log: Floats, seen: Floats) -> dict[str, float | None]:
    median, high = _quantiles(np.abs(np.exp(predicted_log - seen) - 1.0))
    return {"median": median, "p90": high}


def _quantiles(errors: Floats) -> tuple[float, float]:
    median, high = np.quantile(errors, (0.5, 0.9)).tolist()
    return median, high
