"""How well a short run of a program on a share of a GPU tells what the program does there when it is moved.

    PYTHONPATH=operator:profiler_sidecar:hack:. python -m tests.gpu.check_trials [--seconds 15]

Each program runs twice on a half or a quarter of the chip by MPS, as a process of its own with agent and sidecar: for
the trial, then as the job that was moved there. Both rates are by the agent's counters. Takes seven minutes, PyTorch,
torchvision, JAX and the driver's nvidia-cuda-mps-control. Exits 1 if trials are off by more than 3% in the median, or
one by more than 8%.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from typing import Final

from rightpool import contract
from tests.gpu import machine
from tests.gpu.labelled_runs import page_of, total
from tests.gpu.pod import ROOT, Pod

CASES: Final = (
    ("gpt", 50),
    ("gpt", 25),
    ("resnet", 50),
    ("resnet", 25),
    ("normalise", 50),
    ("tiny", 50),
    ("starved", 50),
    ("jax-gpt", 50),
)
_SETTLES: Final = 3.0  # seconds from the first step on, which are not measured
_LONGEST_START: Final = 60.0


def rate_of(program: str, percent: int, seconds: float, own: dict[str, str]) -> float:
    """Steps a second of a process of its own."""
    with tempfile.TemporaryDirectory() as folder, Pod(interval=1) as pod:
        script = str(ROOT / "tests" / "gpu" / "moving_program.py")
        shares = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent)}
        process = pod.start(script, program, folder, **own, **shares)
        try:
            deadline = time.monotonic() + _LONGEST_START
            while not total(page_of(pod.port), contract.STEPS):
                assert process.poll() is None and time.monotonic() < deadline, f"{program} does not train"
                time.sleep(0.1)
            time.sleep(_SETTLES)
            (began, first), (ended, last) = _counted(pod), _later(pod, seconds)
        finally:
            process.send_signal(signal.SIGINT)  # who is killed amid a kernel takes the server of MPS along
            process.communicate(timeout=_LONGEST_START)
        return (last - first) / (ended - began)


def _later(pod: Pod, seconds: float) -> tuple[float, float]:
    time.sleep(seconds)
    return _counted(pod)


def _counted(pod: Pod) -> tuple[float, float]:
    """The moment right after the count has changed, and the count."""
    before = total(page_of(pod.port), contract.STEPS)
    while (now := total(page_of(pod.port), contract.STEPS)) == before or now is None:
        time.sleep(0.005)
    return time.monotonic(), now


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15.0, help="that are measured in each")
    options = parser.parse_args()
    machine.require("torch")
    print("| program | share | trial, steps/s | moved, steps/s | off |\n|---|---|---:|---:|---:|")
    offs = []
    with machine.shared() as own:
        for program, percent in CASES:
            trial, moved = (rate_of(program, percent, options.seconds, own) for _ in range(2))
            offs.append(abs(trial / moved - 1.0))
            print(f"| {program} | {percent}% | {trial:.2f} | {moved:.2f} | {trial / moved - 1.0:+.1%} |", flush=True)
    median, largest = statistics.median(offs), max(offs)
    print(f"off by {median:.1%} in the median, {largest:.1%} at most, of {len(offs)} trials of {options.seconds:.0f} s")
    return 0 if median <= 0.03 and largest <= 0.08 else 1


if __name__ == "__main__":
    sys.exit(main())
