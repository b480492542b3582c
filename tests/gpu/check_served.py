"""What a server on shares of a GPU serves within its 99th percentile, beside what was said of it.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m tests.gpu.check_served [--json DIR] [--measured DIR]

Two servers answer requests that come at random, on the whole chip, a half and a quarter of it by MPS. Of the whole chip
is said by its own batches, of the shares by those of the whole chip and by how much slower a chip of such figures is.
The limit of each case is the 99th percentile that was measured; so the requests a second that came are what is
servable within it. Takes six minutes, PyTorch, torchvision and the driver's nvidia-cuda-mps-control.

--json: where what was measured is kept; --measured: judge what was kept, which needs no GPU. Exits 1 if fewer than
80% of the cases hold what was said with 90% certainty.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.catalog import load_catalog
from rightpool.planning.offers.servers.sizing import LatencyTarget, servable
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.server import LoadLine, fit
from rightpool.prediction.transfer import Transfer
from rightpool.profiles.demand import SLOT
from tests.gpu import machine
from tests.gpu.move_pools import CHIPS, SHARES

MODELS: Final = ("encoder", "resnet")
PERCENTS: Final = (100, 50, 25)
"""Shares of the chip's multiprocessors, the whole chip first."""
LOADS: Final = ("0.2", "0.4", "0.6", "0.75")
"""Requests that come, as shares of the most that full batches reach."""

_SECONDS: Final = "10"
_HOUR: Final = round(3600 / SLOT)  # of a steady record


def measure(folder: Path) -> None:
    """Run each server on each share."""
    machine.require("torch")
    with machine.shared() as folders:
        for model in MODELS:
            for percent in PERCENTS:
                done = subprocess.run(
                    [sys.executable, "-m", "tests.gpu.served_program", model, _SECONDS, *LOADS],
                    env={**os.environ, **folders, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent)},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                (folder / f"{model}-{percent}.json").write_text(done.stdout)


def chip(percent: int, model: str = "H200") -> Accelerator:
    """A share of the chip, by its figures."""
    whole = load_catalog().get(CHIPS[model][0])
    if percent == 100:
        return whole
    compute, copy = SHARES[model][percent]
    peaks = {kind: rate * compute for kind, rate in whole.peak_flops.items()}
    return replace(whole, key=f"{model}-{percent}", peak_flops=peaks, memory_bandwidth=whole.memory_bandwidth * copy)


def line_of(measured: dict[str, Any]) -> LoadLine:
    """By its batches, as the operator fits them."""
    windows = np.array([window for run in measured["runs"] for window in run["windows"]])
    return fit(windows[:, 0], windows[:, 1], np.ones(len(windows)), float(measured["largest"]))


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=Path("served"))
    parser.add_argument("--measured", type=Path)
    options = parser.parse_args()
    folder = options.measured or options.json
    if options.measured is None:
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder)
    transfer = Transfer.among([chip(percent) for percent in PERCENTS], shipped())
    print("| server | share | speed said | measured | p99, ms | requests/s | said at least | at most |")
    print("|---|---|---|---|---|---|---|---|")
    held = []
    for model in MODELS:
        found = {percent: json.loads((folder / f"{model}-{percent}.json").read_text()) for percent in PERCENTS}
        home = line_of(found[100])
        for number, (percent, measured) in enumerate(found.items()):
            speed, sd = math.exp(transfer.log[-1, 0, number]), math.sqrt(transfer.variances[0, -1, 0, number])
            line = home if percent == 100 else home.elsewhere(speed, sd)
            seen = measured["highest"] / found[100]["highest"]
            for run in measured["runs"]:
                limit, rate = run["seconds"]["0.99"], run["rate"]
                able = servable(line, np.full(_HOUR, rate * SLOT), LatencyTarget(limit, 0.99))
                held.append(able.at_least <= rate)
                print(
                    f"| {model} | {percent}% | {speed:.2f} ± {sd:.2f} | {seen:.2f} | {limit * 1e3:.2f} | {rate:,.0f} "
                    f"| {able.at_least:,.0f} | {able.at_most:,.0f} |"
                )
    print(f"{sum(held)} of {len(held)} cases serve what was said with 90% certainty")
    return 0 if sum(held) >= 0.8 * len(held) else 1


if __name__ == "__main__":
    sys.exit(main())
