"""How far throughput and latency of serving are off.

    PYTHONPATH=operator:. python -m benchmarks.serving [--published DIR] [--live SECONDS] [--docs FILE]

Against an exact simulation of every request, with service times as the model takes them: what the queue is off by. With
--published (tables mlperf_inference.csv and nvidia_dle.csv) against MLPerf: Server's throughput from Offline's, beside
the rule that they are the same. With --live against a real batched server of a PyTorch model on loopback, for so many
seconds at each rate; on a machine with other work it shows that work.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.serving.published import chosen_elsewhere, fitted_half, halves, pairs, predicted
from benchmarks.serving.simulation import errors
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import HALF, HALF_SD

MARKS = ("<!-- serving: python -m benchmarks.serving --docs -->", "<!-- end of serving -->")
REQUESTS = 100_000


def simulated_lines() -> list[str]:
    """Errors of the queue by utilisation."""
    lines = [
        "| utilisation | servers | median latency, typical and largest error | 99th percentile, typical and largest |",
        "|---|---:|---|---|",
    ]
    for utilisation, half, tail in errors(REQUESTS):
        cells = [f"{np.median(abs(one)):.1%}, {one[np.argmax(abs(one))]:+.1%}" for one in (half, tail)]
        lines.append(f"| {utilisation:.0%} | {len(half)} | {' | '.join(cells)} |")
    return lines


def published_lines(directory: Path) -> list[str]:
    """Errors of MLPerf's Server predicted from Offline."""
    lines = [
        "| Server from Offline | systems | Server/Offline, published and predicted | error, median / 90th percentile"
        " | constants of the others | rule: the same | in 80% |",
        "|---|---:|---|---|---|---|---:|",
    ]
    systems = pairs(directory / "mlperf_inference.csv")
    found, elsewhere = predicted(systems), chosen_elsewhere(systems)
    columns: list[tuple[Floats, Floats, Floats]] = []
    inside = []
    for name, one in found.items():
        columns.append((one.errors, elsewhere[name].errors, abs(1.0 / one.seen - 1.0)))
        inside.append((one.low <= one.seen) & (one.seen <= one.high))
        ratios = f"{np.median(one.seen):.2f}, {np.median(one.median):.2f}"
        errors_of = " | ".join(_both(column) for column in columns[-1])
        lines.append(f"| {name} | {len(one.seen)} | {ratios} | {errors_of} | {inside[-1].mean():.0%} |")
    whole = [np.concatenate(column) for column in zip(*columns, strict=True)]
    errors_of = " | ".join(_both(column) for column in whole)
    lines.append(f"| all | {len(whole[0])} | | {errors_of} | {np.concatenate(inside).mean():.0%} |")
    models = halves(directory / "nvidia_dle.csv")
    half, sd = fitted_half(models)
    lines += [
        "",
        f"In {len(models)} of NVIDIA's PyTorch and TensorFlow models at several batches the fixed part of a step is as",
        f"long as a batch of {half:.1f} times the root of the largest one (sd of the log {sd:.1f}); the model has",
        f"{HALF} ({HALF_SD}).",
    ]
    return lines


def live_lines(seconds: float) -> list[str]:
    """What a real server did."""
    from benchmarks.serving.live import BATCH, runs

    lines = [
        f"a real server, batches of up to {BATCH}; milliseconds",
        "| time | utilisation | requests | p50 | predicted (80%) | p99 | predicted (80%) |",
        "|---|---:|---:|---:|---|---:|---|",
    ]
    for run in runs(seconds):
        half, tail = run.predicted_half, run.predicted_tail
        predictions = [
            f"{1e3 * ends.median[0]:.1f} ({1e3 * ends.low[0]:.1f} to {1e3 * ends.high[0]:.1f})" for ends in (half, tail)
        ]
        lines.append(
            f"| {run.clock} | {run.utilisation:.0%} | {run.requests} | {1e3 * run.half:.1f} | {predictions[0]} "
            f"| {1e3 * run.tail:.1f} | {predictions[1]} |"
        )
    return lines


def _both(errors: Floats) -> str:
    median, high = np.quantile(errors, (0.5, 0.9))
    return f"{median:.1%} / {high:.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description="How far serving is off.")
    parser.add_argument("--published", type=Path, help="directory of published tables")
    parser.add_argument("--live", type=float, help="seconds at each rate of a real server")
    parser.add_argument("--docs", type=Path, help="write what is simulated and published into this page")
    given = parser.parse_args(arguments)
    lines = simulated_lines()
    if given.published is not None:
        lines += ["", *published_lines(given.published)]
    print("\n".join(lines), flush=True)
    if given.docs is not None:
        page = given.docs.read_text(encoding="utf-8")
        head, rest = page.split(MARKS[0])
        text = "\n".join(["", *lines, ""])
        given.docs.write_text(f"{head}{MARKS[0]}\n{text}{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")
    if given.live is not None:
        print("\n".join(["", *live_lines(given.live)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
