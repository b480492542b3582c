"""The GPUs of this machine, by a framework and by nvidia-smi."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.gpu.pod import bare_environment

NO_GPU = 2  # exit code

_ASK = {
    "torch": """
import torch
print(torch.cuda.device_count(), torch.__version__)
""",
    "jax": """
import jax
print(sum(one.platform == "gpu" for one in jax.devices()), jax.__version__)
""",
}


def require(framework: str, gpus: int = 1) -> None:
    """Print the machine. Exits with 2 if the framework has fewer GPUs."""
    asked = subprocess.run(
        [sys.executable, "-c", _ASK[framework]], env=bare_environment(), capture_output=True, text=True
    )
    count, _, version = asked.stdout.strip().rpartition("\n")[2].partition(" ")
    if asked.returncode != 0 or not count.isdigit():
        last = asked.stderr.strip().rpartition("\n")[2]
        print(f"{framework} does not run here, and this needs it with a GPU: {last}", file=sys.stderr)
        sys.exit(NO_GPU)
    if int(count) < gpus:
        print(f"this needs {gpus} NVIDIA GPU(s) that {framework} {version} can use: {count} found", file=sys.stderr)
        sys.exit(NO_GPU)
    found = _ask_smi("name,driver_version")
    today = datetime.datetime.now(tz=datetime.UTC).date()
    print(f"{today}: {gpus} × {found[0][0]}, driver {found[0][1]}, {framework} {version}", flush=True)


@contextmanager
def shared() -> Iterator[dict[str, str]]:
    """The variables of programs that get a share of a GPU, by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE."""
    with tempfile.TemporaryDirectory() as folder:
        own = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        control = ["nvidia-cuda-mps-control"]
        subprocess.run([*control, "-d"], env={**os.environ, **own}, check=True)
        try:
            yield own
        finally:
            subprocess.run(control, input="quit\n", env={**os.environ, **own}, text=True, check=False)


@dataclass(frozen=True)
class Reading:
    """One moment of one GPU, in SI units."""

    memory_used: float
    memory_total: float
    power: float
    clock: float


def readings() -> list[Reading]:
    """The present readings of nvidia-smi for each GPU."""
    return [
        Reading(float(used) * 2**20, float(total) * 2**20, float(power), float(clock) * 1e6)
        for used, total, power, clock in _ask_smi("memory.used,memory.total,power.draw,clocks.sm")
    ]


def _ask_smi(fields: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[value.strip() for value in line.split(",")] for line in done.stdout.strip().splitlines()]
