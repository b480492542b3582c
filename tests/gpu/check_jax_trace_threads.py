"""Whether traces of a JAX program on this machine's GPUs end the program, by who takes them and when.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_jax_trace_threads [--runs 4] [--at-once 4]

Needs jax with CUDA. No agent is there: the program takes twelve traces of itself, by a thread beside it, or between two
steps; there with work still in flight, or as the agent does, after waiting for all arrays. While one is taken another
thread may send batches to the GPU. Prints how many programs ended well with the same result. Ends with 0, because the
report is for people; with 2 without a GPU.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.gpu import machine

PROGRAM = """
import hashlib, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
from jax._src import profiler

how, kind = sys.argv[1:]
keys = jax.random.split(jax.random.key(0), 6)
w = [jax.random.normal(key, (2048, 2048), jnp.bfloat16) * 0.02 for key in keys]

def loss(w, x):
    for a in w: x = jnp.tanh(x @ a)
    return (x.astype(jnp.float32) ** 2).mean()

def once(w, x): return [a - 1e-3 * g for a, g in zip(w, jax.grad(loss)(w, x))]
step = jax.jit(once)
if kind == "scan": step = jax.jit(lambda w, x: jax.lax.scan(lambda c, _: (once(c, x), None), w, length=10)[0])

def begin():
    options = profiler.ProfileOptions()
    options.python_tracer_level, options.host_tracer_level, options.enable_hlo_proto = 0, 1, False
    return profiler._profiler.ProfilerSession(options)

def trace():
    session = begin()
    time.sleep(0.1)
    session.stop()

def drain():
    for array in jax.live_arrays(): array.block_until_ready()

x, over = np.ones((1024, 2048), np.float32), False
def send():
    while not over: jax.device_put(x).block_until_ready(); time.sleep(0.0005)
if how == "sending": threading.Thread(target=send).start()
taken, session, beside = 0, None, None
for i in range(460):
    turn = (i - 64) % 30  # not where the program itself waits
    if i >= 64 and how == "thread" and turn == 0 and taken < 12 and not (beside and beside.is_alive()):
        beside, taken = threading.Thread(target=trace), taken + 1
        beside.start()
    if i >= 64 and how not in ("none", "thread") and turn in (0, 12):
        if how != "flight": drain()
        if turn == 0: session = begin()
        else: session = session.stop() and None; taken += 1
    w = step(w, jnp.asarray(x, jnp.bfloat16))
    if i % 10 == 9:
        jax.block_until_ready(w)
        time.sleep(0.002)
if session: drain(); session.stop()
if beside: beside.join()
over = True
time.sleep(1)
print(hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in w)).hexdigest(), flush=True)
"""
_WAYS = {
    "thread": "a thread beside it, at any time",
    "flight": "between two steps, with work in flight",
    "drained": "between two steps, after all arrays",
    "sending": "the same, while a thread sends batches",
}
# Autotuning may select different kernels in each run, with different results.
_FLAGS = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="of each way and program")
    parser.add_argument("--at-once", type=int, default=4, help="programs on the GPU at the same time")
    options = parser.parse_args()
    machine.require("jax")
    print("| program | twelve traces taken | programs | ended well | with the same result | errors |")
    print("|---|---|---|---|---|---|")
    with ThreadPoolExecutor(options.at_once) as pool:
        for kind in ("batch", "scan"):
            expected, _ = ended("none", kind)
            runs = {way: [pool.submit(ended, way, kind) for _ in range(options.runs)] for way in _WAYS}
            for way, futures in runs.items():
                found = [future.result() for future in futures]
                well = [result for result, _ in found if result]
                errors = sorted({error for _, error in found if error})
                same = sum(result == expected for result in well)
                print(
                    f"| {kind} | {_WAYS[way]} | {len(found)} | {len(well)} | {same} | {', '.join(errors) or '–'} |",
                    flush=True,
                )
    return 0


def ended(how: str, kind: str) -> tuple[str, str]:
    """The program's result, empty where it failed, and CUDA's word for why."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, kind],
        env={**os.environ, "XLA_FLAGS": _FLAGS, "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"},
        capture_output=True,
        text=True,
    )
    error = re.search(r"CUDA_ERROR\w+", done.stderr)
    return (done.stdout.strip(), "") if done.returncode == 0 else ("", error[0] if error else f"{done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
