"""Moves of a server between shares of a GPU under requests, and what was promised of each beside what came of it.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m tests.gpu.check_server_moves [--json FILE] [--measured FILE]

Two servers run on half of a chip and on two quarters of it at once, by MPS. Requests come at random. A move is planned
by the batches of the side where it is, as the operator does, and carried out by the operator's own steps and verdict:
from half to a quarter that costs less, from quarters to half, and to a quarter that is said to be faster than the
whole chip, from which it is to go back. Takes eight minutes, PyTorch, torchvision and nvidia-cuda-mps-control.

--json: where what was measured is kept; --measured: print what was kept, which needs no GPU. Exits with 1 if a verdict
is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.servers.moves import Came, Sides, carried_out
from rightpool.hardware.accelerator import Accelerator
from rightpool.planning.judge.traffic import Answered, TrafficBlock
from rightpool.planning.offers.servers.sizing import LatencyTarget, servable, sized
from rightpool.prediction.chip_data import shipped
from rightpool.prediction.server import LoadLine, fit
from rightpool.prediction.transfer import Transfer
from rightpool.profiles.demand import SLOT
from tests.gpu import machine
from tests.gpu.check_served import chip

LIMITS: Final = {"encoder": 0.008, "resnet": 0.012}
"""Seconds at the 99th percentile."""
WORKERS: Final = (50, 25, 25)
"""Percent of the chip's multiprocessors."""
HOLD: Final = 30.0
"""Seconds with all requests on the new side."""

_HOUR: Final = round(3600 / SLOT)  # of a steady record
_FULL: Final = 0.9  # of what is surely servable there, so that what is promised is not at its edge
_LOADS: Final = (0.2, 0.4, 0.6)
_CALIBRATION: Final = 5.0  # seconds of each load


class Case(NamedTuple):
    """Where a server is, and where it is to go: workers, and dollars an hour of one."""

    name: str
    old: tuple[int, ...]
    old_price: float
    new: tuple[int, ...]
    new_price: float
    boasts: float | None = None
    """What the new side's figures claim, as a share of the whole chip; None: the truth."""


CASES: Final = (
    Case("half to a cheap quarter", (0,), 1.8, (1,), 0.9),
    Case("quarters to a cheap half", (1, 2), 1.8, (0,), 2.1),
    Case("half to a quarter that boasts", (0,), 1.8, (1,), 1.2, boasts=1.6),
)


@dataclass(frozen=True, slots=True)
class ServerMove:
    """What was promised, and what came."""

    server: str
    case: str
    limit: float
    """Seconds."""
    rate: float
    """Requests a second."""
    before: float
    """Dollars per million requests."""
    promised: float
    """Likewise."""
    after: float | None
    """Likewise, of the hold; None where it went back."""
    promised_p99: float | None
    """Seconds."""
    p99: float | None
    """Seconds, the mean of the hold's readings; None where it went back."""
    late: float
    """Share of all requests of the new side."""
    back: bool
    """Whether it was undone."""
    seconds: float
    """How long it took."""


class Workers:
    """The servers of one model, each on its share."""

    def __init__(self, model: str, folders: dict[str, str], stack: ExitStack) -> None:
        self._running: list[subprocess.Popen[str]] = []
        figures = []
        for percent in WORKERS:  # one after the other: each measures its highest rate alone
            share = {**os.environ, **folders, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent)}
            words = [sys.executable, "-m", "tests.gpu.served_program", model]
            program = subprocess.Popen(words, env=share, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self._running.append(stack.enter_context(program))
            figures.append(self._read(len(self._running) - 1))
        self.largest = float(figures[0]["largest"])
        self.lines = [self._line(number, one["highest"]) for number, one in enumerate(figures)]

    def answers(self, rates: dict[int, float], seconds: float, limit: float) -> list[dict[str, Any]]:
        """What each of these workers did with so many requests a second, all at once."""
        for number, rate in rates.items():
            pipe = self._running[number].stdin
            assert pipe is not None
            print(rate, seconds, limit, file=pipe, flush=True)
        return [self._read(number) for number in rates]

    def end(self) -> None:
        """They end when nothing more is asked of them."""
        for program in self._running:
            assert program.stdin is not None
            program.stdin.close()

    def _read(self, number: int) -> dict[str, Any]:
        pipe = self._running[number].stdout
        assert pipe is not None
        found: dict[str, Any] = json.loads(pipe.readline())
        return found

    def _line(self, number: int, highest: float) -> LoadLine:
        """By its batches, as the operator fits them."""
        runs = [self.answers({number: share * highest}, _CALIBRATION, math.inf)[0] for share in _LOADS]
        windows = np.array([window for run in runs for window in run["windows"]])
        return fit(windows[:, 0], windows[:, 1], np.ones(len(windows)), self.largest)


class Shared:
    """Both sides under requests, as `carried_out` asks for them."""

    def __init__(self, workers: Workers, case: Case, rate: float, limit: float) -> None:
        self._workers, self._case, self._rate, self._limit = workers, case, rate, limit
        self.late = self.requests = 0.0
        self.p99s: list[float] = []
        self.rates: list[float] = []

    def __call__(self, up: int | None, seconds: float, *, last: bool = False) -> Came:
        """As Answering has it."""
        case = self._case
        new = case.new[:up]
        endpoints = (*new, *(() if up is None else case.old))
        rates = dict.fromkeys(endpoints, self._rate / len(endpoints))
        found = self._workers.answers(rates, seconds, self._limit)
        mine, theirs = found[: len(new)], found[len(new) :]
        block = TrafficBlock(_answered(mine), None if up is None else _answered(theirs))
        self.requests += block.new.requests
        self.late += block.new.late
        if up is None:
            self.p99s += [one["seconds"]["0.99"] for one in mine]
            self.rates.append(block.new.requests / seconds)
        windows = np.array([window for one in mine for window in one["windows"]])
        batches = windows[:, 2] / windows[:, 0]
        return Came(block, windows[:, 2].sum() / batches.sum(), float(np.average(windows[:, 1], weights=batches)))


def _answered(side: Sequence[dict[str, Any]]) -> Answered:
    return Answered(sum(one["requests"] for one in side), sum(one["late"] for one in side), 0.0, 0.0)


def _claimed(percent: int, boasts: float | None) -> Accelerator:
    """A share of the chip by its figures, or by what it claims."""
    whole = chip(100)
    if boasts is None:
        return chip(percent)
    peaks = {kind: rate * boasts for kind, rate in whole.peak_flops.items()}
    return replace(whole, key="boasted", peak_flops=peaks, memory_bandwidth=whole.memory_bandwidth * boasts)


def _promised(workers: Workers, case: Case) -> LoadLine:
    """What batches would take on the new side, by those of the old one."""
    chips = [chip(WORKERS[case.old[0]]), _claimed(WORKERS[case.new[0]], case.boasts)]
    transfer = Transfer.among(chips, shipped())
    faster, sd = math.exp(transfer.log[-1, 0, 1]), math.sqrt(transfer.variances[0, -1, 0, 1])
    return workers.lines[case.old[0]].elsewhere(faster, sd)


def moved(workers: Workers, model: str, case: Case) -> ServerMove:
    """Plan it, and carry it out."""
    limit = LIMITS[model]
    target, here, there = LatencyTarget(limit, 0.99), workers.lines[case.old[0]], _promised(workers, case)
    full = np.full(_HOUR, here.most / here.seconds(here.most) * SLOT)
    most = [servable(line, full, target).at_least * len(side) for line, side in ((here, case.old), (there, case.new))]
    rate = _FULL * min(most)
    size = sized("", there, np.full(_HOUR, rate * SLOT), target)
    assert size is not None and size.replicas == len(case.new), size
    shared = Shared(workers, case, rate, limit)
    sides = Sides(here, there, limit, len(case.new), len(case.old), size.spare)
    came = carried_out(sides, shared, HOLD)
    new_price = len(case.new) * case.new_price
    return ServerMove(
        server=model,
        case=case.name,
        limit=limit,
        rate=rate,
        before=_per_million(len(case.old) * case.old_price, rate),
        promised=_per_million(new_price, rate),
        after=None if came.back else _per_million(new_price, float(np.mean(shared.rates))),
        promised_p99=size.within,
        p99=None if came.back else float(np.mean(shared.p99s)),
        late=shared.late / shared.requests,
        back=came.back,
        seconds=came.seconds,
    )


def _per_million(dollars_an_hour: float, rate: float) -> float:
    return dollars_an_hour / 3600.0 / rate * 1e6


def measure() -> list[ServerMove]:
    """All cases of all servers."""
    machine.require("torch")
    found = []
    with machine.shared() as folders:
        for model in LIMITS:
            with ExitStack() as stack:
                workers = Workers(model, folders, stack)
                for case in CASES:
                    found.append(moved(workers, model, case))
                    print(found[-1], file=sys.stderr, flush=True)
                workers.end()
    return found


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=Path("server-moves.json"))
    parser.add_argument("--measured", type=Path)
    options = parser.parse_args()
    if options.measured is None:
        found = measure()
        options.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    else:
        found = [ServerMove(**one) for one in json.loads(options.measured.read_text())]
    print("| server | move | requests/s | limit, ms | p99 promised | measured | late | $ per million before |", end="")
    print(" promised | came | verdict | s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|")
    for one in found:
        p99s = " | ".join("–" if value is None else f"{value * 1e3:.1f}" for value in (one.promised_p99, one.p99))
        dollars = " | ".join("–" if it is None else f"{it:.3f}" for it in (one.before, one.promised, one.after))
        verdict = "went back" if one.back else "kept"
        print(
            f"| {one.server} | {one.case} | {one.rate:,.0f} | {one.limit * 1e3:.0f} | {p99s} | {one.late:.2%} "
            f"| {dollars} | {verdict} | {one.seconds:.0f} |"
        )
    boasting = {case.name for case in CASES if case.boasts is not None}
    return int(any(one.back != (one.case in boasting) for one in found))


if __name__ == "__main__":
    sys.exit(main())
