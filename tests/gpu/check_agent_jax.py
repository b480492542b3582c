"""Runs a JAX program on this machine's GPU with the agent and a sidecar, and compares their values.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_agent_jax [--steps 2500]

Needs jax with CUDA, nvidia-smi, and `pynvml` (nvidia-ml-py) for the chip counters. Compares the program's result, exit
code, steps, samples and step time, and shows that no trace is taken of it that nobody has asked for. Exits 1 if
something disagrees, 2 without a GPU. What traces on request do to a program is for check_trace_jax.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import Checks, Page, Pod, bare_environment, labelled

# Prints the same result in each run; beside it, and not compared, its times.
PROGRAM = """
import hashlib, json, sys, time
import jax, jax.numpy as jnp, numpy as np
from jax._src import profiler

ROWS = 3072  # as no parameter has
steps = int(sys.argv[1])
sessions = []
original = profiler._profiler.ProfilerSession

class Counted:
    "XLA's own session, seen to begin and to end."
    def __init__(self, *options):
        self.session = original(*options)
        sessions.append(time.perf_counter())
    def __getattr__(self, name): return getattr(self.session, name)

profiler._profiler.ProfilerSession = Counted

def loss(weights, batch):
    x = batch["x"]
    for w in weights: x = jnp.tanh(x @ w)
    return ((x - batch["y"]) ** 2).mean()

@jax.jit
def step(weights, batch):
    return [w - 1e-3 * g for w, g in zip(weights, jax.grad(loss)(weights, batch))]

keys = jax.random.split(jax.random.key(0), 10)
weights = [jax.random.normal(key, (4096, 4096), jnp.bfloat16) * 0.02 for key in keys[:8]]
batch = {"x": jax.random.normal(keys[8], (ROWS, 4096), jnp.bfloat16), "y": jnp.zeros((ROWS, 4096), jnp.bfloat16)}
# The same arrays in each step would be none that a loader made, and their rows no samples.
batches = [batch, jax.tree.map(jnp.copy, batch)]
weights = jax.block_until_ready(step(weights, batch))

times = [time.perf_counter()]
for n in range(steps):
    weights = step(weights, batches[n % 2])
    if n % 10 == 9:
        jax.block_until_ready(weights)
        times.append(time.perf_counter())
result = hashlib.sha256(b"".join(np.asarray(w).tobytes() for w in weights)).hexdigest()
tens = [b - a for a, b in zip(times, times[1:])]
middle = lambda some: sorted(some)[len(some) // 2] / 10
print(json.dumps({"result": result, "steps": steps, "samples": ROWS * steps, "step": middle(tens),
    "sessions": len(sessions)}), flush=True)
"""
# Autotuning may select different kernels in each run, with different results.
_FLAGS = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"


@dataclass(frozen=True)
class Ended:
    """How a program ended, and its own measurements if it got so far."""

    code: int
    printed: Page
    result: str
    errors: str

    @classmethod
    def of(cls, program: subprocess.Popen[str]) -> Ended:
        out, err = program.communicate()
        printed = json.loads(out) if program.returncode == 0 else {}
        return cls(program.returncode, printed, printed.pop("result", ""), err)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2500)
    options = parser.parse_args()
    machine.require("jax")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM)
        command = (str(script), str(options.steps))
        bare = run_bare(*command)
        if bare.code:
            print(f"the program does not run here, without the agent: exit code {bare.code}\n{bare.errors[-2000:]}")
            return 1
        return check(bare, *command)


def run_bare(*command: str) -> Ended:
    """Run without the agent."""
    return Ended.of(
        subprocess.Popen(
            [sys.executable, *command],
            env={**bare_environment(), "XLA_FLAGS": _FLAGS},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


def run_with_agent(pod: Pod, *command: str) -> tuple[Ended, Page, list[machine.Reading]]:
    """How it ended, the last page and readings of its middle."""
    program = pod.start(*command, XLA_FLAGS=_FLAGS)
    pages: list[tuple[Page, machine.Reading]] = []
    while program.poll() is None:
        time.sleep(1)
        pages.append((pod.page(), machine.readings()[0]))
    middle = [(page, reading) for page, reading in pages if page.get(contract.STEPS)][:-2]
    return Ended.of(program), middle[-1][0] if middle else {}, [reading for _, reading in middle]


def check(bare: Ended, *command: str) -> int:
    """Compare runs with and without the agent."""
    with Pod() as pod:
        ended, page, readings = run_with_agent(pod, *command)
        last = pod.page()
    checks = Checks()
    checks.true("exit code", ended.code == 0, f"{ended.code}")
    checks.true("errors", ended.errors == bare.errors, ended.errors[-2000:].strip() or "none")
    checks.true("result", ended.result == bare.result, f"{ended.result[:16]}, without the agent {bare.result[:16]}")
    if ended.code or not page:
        return 1
    own = ended.printed
    # The agent identifies the step function after some calls; its compilation is not counted.
    checks.near("steps", own["steps"], last.get(contract.STEPS, 0), 2)
    checks.near("samples", own["samples"], last.get(contract.SAMPLES, 0), 2 * 3072)
    mean = last[f"{contract.STEP_SECONDS}_sum"] / last[f"{contract.STEP_SECONDS}_count"]
    checks.near("step time, ms", own["step"] * 1e3, mean * 1e3, 0.05 * own["step"] * 1e3)
    before = bare.printed["step"]
    checks.near("step time without the agent, ms", before * 1e3, own["step"] * 1e3, 0.05 * before * 1e3)
    checks.near("sessions of XLA's profiler", 0, own["sessions"], 0)
    checks.true("shares of a step", not labelled(last, contract.STEP_SHARE), "none: it is not traced")
    for metric in (contract.CHIP_BUSY, contract.CHIP_COMPUTE_ACTIVE, contract.CHIP_MATRIX_ACTIVE):
        found = labelled(page, metric)
        checks.true(metric, 0 < max(found, default=0.0) <= 1, f"{found}")  # the program uses one chip of the machine's
    used, room = labelled(page, contract.CHIP_MEMORY_USED), 0.02 * readings[-1].memory_total
    checks.near("memory in use, GiB", readings[-1].memory_used / 2**30, (used or [0])[0] / 2**30, room / 2**30)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
