"""Whether a trace of a JAX program on this machine's GPU ends the program, by the thread that takes it.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_jax_trace_threads [--runs 8]

Needs jax with CUDA. No agent is there: the program takes three traces of itself, by a thread of their own, as an agent
would, or between two steps. Prints how many programs ended well with the same result. Ends with 0, because the report
is for people; with 2 without a GPU.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile

from tests.gpu import machine

PROGRAM = """
import hashlib, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
from jax._src import profiler

how, folder = sys.argv[1:]
keys = jax.random.split(jax.random.key(0), 6)
w = [jax.random.normal(key, (2048, 2048), jnp.bfloat16) * 0.02 for key in keys]

def loss(w, x):
    for a in w: x = jnp.tanh(x @ a)
    return (x.astype(jnp.float32) ** 2).mean()

@jax.jit
def step(w, x): return [a - 1e-3 * g for a, g in zip(w, jax.grad(loss)(w, x))]

def trace():
    options = profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level, options.enable_hlo_proto = 0, 2, False
    session = profiler._profiler.ProfilerSession(options)
    time.sleep(0.15)
    session.stop()

x = np.ones((1024, 2048), np.float32)
for i in range(600):
    if i in (150, 300, 450):
        if how == "thread": threading.Thread(target=trace).start()
        if how == "steps": jax.profiler.start_trace(f"{folder}/{i}")
    if i in (200, 350, 500) and how == "steps": jax.profiler.stop_trace()
    w = step(w, jnp.asarray(x, jnp.bfloat16))
    if i % 10 == 9:
        jax.block_until_ready(w)
        time.sleep(0.002)
time.sleep(2)
print(hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in w)).hexdigest(), flush=True)
"""
# Autotuning may select different kernels in each run, with different results.
_FLAGS = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8, help="programs of each kind")
    options = parser.parse_args()
    machine.require("jax")
    expected, _ = ended("none")
    print("| three traces taken by | programs | ended well | with the same result | errors |")
    print("|---|---|---|---|---|")
    for how in ("thread", "steps"):
        found = [ended(how) for _ in range(options.runs)]
        well = [result for result, _ in found if result]
        errors = sorted({error for _, error in found if error})
        same = sum(result == expected for result in well)
        print(f"| {how} | {len(found)} | {len(well)} | {same} | {', '.join(errors) or '–'} |", flush=True)
    return 0


def ended(how: str) -> tuple[str, str]:
    """The program's result, empty where it failed, and CUDA's word for why."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, how, folder],
            env={**os.environ, "XLA_FLAGS": _FLAGS},
            capture_output=True,
            text=True,
        )
    error = re.search(r"CUDA_ERROR\w+", done.stderr)
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", error[0] if error else f"{done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
