"""Has JAX programs on this machine's GPUs traced on request, and compares them with themselves without the agent.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_trace_jax [--gpus 1] [--only KIND …] [--runs 10]

Needs jax with CUDA, nvidia-smi, and `pynvml` (nvidia-ml-py) for the chip counters. One GPU: a program that sends a
batch in each step, and one whose call is a `lax.scan` of ten steps; two: a mesh and `pmap`. Each waits on the host for
a part of its time that it knows. The first run of each has the GPUs to itself: what its traces say is compared with the
program's own clock and with NVML. In all runs exit code, result (bit for bit) and stderr must be those of the bare
program. Exits 1 if something disagrees, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import Checks, Pod, bare_environment, labelled

PROGRAM = """
import functools, hashlib, json, os, sys, time
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

kind, calls = sys.argv[1], int(sys.argv[2])
keys = jax.random.split(jax.random.key(0), 8)
w = [jax.random.normal(key, (4096, 4096), jnp.bfloat16) * 0.02 for key in keys]
x = np.ones((2048, 4096), np.float32)

def loss(w, x):
    for a in w: x = jnp.tanh(x @ a)
    return (x.astype(jnp.float32) ** 2).mean()

def once(w, x): return [a - 1e-3 * g for a, g in zip(w, jax.grad(loss)(w, x))]

devices = jax.devices()
send = lambda x: jnp.asarray(x, jnp.bfloat16)
step = jax.jit(once)
if kind == "scan":
    step = jax.jit(lambda w, x: jax.lax.scan(lambda c, _: (once(c, x), None), w, length=10)[0])
    calls //= 2
if kind == "mesh":
    mesh = Mesh(np.array(devices), ("data",))
    w = jax.device_put(w, NamedSharding(mesh, P()))
    send = lambda x: jax.device_put(x.astype(jnp.bfloat16), NamedSharding(mesh, P("data")))
if kind == "pmap":
    def train(w, x): return [a - 1e-3 * jax.lax.pmean(g, "d") for a, g in zip(w, jax.grad(loss)(w, x))]
    step = jax.pmap(train, axis_name="d")
    w = [jnp.stack([a] * len(devices)) for a in w]
    send = lambda x: jnp.asarray(x.reshape(len(devices), -1, x.shape[1]), jnp.bfloat16)

computing = began = 0.0
for i in range(calls):
    if i == calls // 4: computing, began = 0.0, time.perf_counter()
    time.sleep(0.004)
    batch = jax.block_until_ready(send(x))
    at = time.perf_counter()
    w = jax.block_until_ready(step(w, batch))
    computing += time.perf_counter() - at
share = computing / (time.perf_counter() - began)
result = hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in w)).hexdigest()
print(json.dumps({"result": result, "computing": share}), flush=True)
"""
_KINDS = {1: ("batch", "scan"), 2: ("mesh", "pmap")}
_TRACES = 2
_SETTLE = 12.0  # seconds: the page's figures are means of ten
# Autotuning may select different kernels in each run, with different results.
_FLAGS = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"


@dataclass
class Run:
    """How a program ended, and what came of its traces."""

    code: int
    errors: str
    result: str
    computing: float
    answers: list[dict[str, Any]] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    """Of the chips, by NVML, before the traces."""

    @classmethod
    def of(cls, program: subprocess.Popen[str]) -> Run:
        out, errors = program.communicate()
        printed = json.loads(out) if program.returncode == 0 else {"result": "", "computing": 0.0}
        return cls(program.returncode, errors, printed["result"], printed["computing"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[kind for kinds in _KINDS.values() for kind in kinds])
    parser.add_argument("--gpus", type=int, default=1, choices=_KINDS)
    parser.add_argument("--runs", type=int, default=10, help="of each program, with traces")
    parser.add_argument("--calls", type=int, default=1600)
    parser.add_argument("--at-once", type=int, default=4, help="programs at the same time, after the first of a kind")
    options = parser.parse_args()
    machine.require("jax", options.gpus)
    checks = Checks()
    rows = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as pool:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM)
        for kind in options.only or _KINDS[options.gpus]:
            command = (str(script), kind, str(options.calls))
            first = traced(command, options.gpus, "0.5", settle=_SETTLE)
            agree(checks, kind, first)
            others = [pool.submit(traced, command, options.gpus, "0.15") for _ in range(options.runs - 1)]
            bare = alone(command)
            runs = [first, *(other.result() for other in others)]
            captured = [one["state"] == contract.TRACE_CAPTURED for run in runs for one in run.answers]
            well, same = sum(run.code == 0 for run in runs), sum(run.result == bare.result for run in runs)
            quiet = sum(run.errors == bare.errors for run in runs)
            rows.append(f"| {kind} | {len(runs)} | {well} | {same} | {quiet} | {sum(captured)} of {len(captured)} |")
            checks.true(f"{kind}: no harm", bare.code == 0 and well == same == quiet == len(runs), rows[-1])
            for run in runs:
                if run.code or run.errors != bare.errors:
                    print(run.errors[-1500:], file=sys.stderr)
                for one in run.answers:
                    if one["state"] != contract.TRACE_CAPTURED:
                        print(f"     {kind}: {one['reason']} {one['message']}")
    print("| program | runs | ended well | with the same result | with the same stderr | traces captured |")
    print("|---|---|---|---|---|---|", *rows, sep="\n")
    return 1 if checks.failed else 0


def alone(command: tuple[str, ...]) -> Run:
    """Without the agent."""
    environment = {**bare_environment(), "XLA_FLAGS": _FLAGS, "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.15"}
    return Run.of(
        subprocess.Popen(
            [sys.executable, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    )


def traced(command: tuple[str, ...], gpus: int, memory: str, settle: float = 0.0) -> Run:
    """With the agent and a sidecar that is asked for traces, `settle` seconds after the first steps."""
    more = {"XLA_FLAGS": _FLAGS, "XLA_PYTHON_CLIENT_MEM_FRACTION": memory, contract.ENV_INTERVAL: "1"}
    with Pod(gpus) as pod:
        program = pod.start(*command, **more)
        while program.poll() is None and not pod.page().get(contract.STEPS, 0) >= 20:
            time.sleep(0.2)
        time.sleep(settle)
        busy = labelled(pod.page(), contract.CHIP_BUSY)
        answers = [pod.ask_trace(f"trace-{number}") for number in range(_TRACES) if program.poll() is None]
        run = Run.of(program)
    run.answers, run.busy = answers, busy
    return run


def agree(checks: Checks, kind: str, run: Run) -> None:
    """What the traces say, the program's own clock and NVML."""
    for answer in run.answers:
        if answer["state"] != contract.TRACE_CAPTURED:
            checks.true(f"{kind}: captured", False, f"{answer['reason']} {answer['message']}")
            continue
        summary = answer["summary"]
        print(f"     {json.dumps(summary)[:1600]}")
        parts = summary["parts"]
        idle = parts.get(contract.PART_IDLE, 0.0)
        working = 1 - idle - parts.get(contract.PART_MEMCPY, 0.0)
        checks.true(f"{kind}: time of the devices", summary["on"] == "device", f"{summary['steps']} steps")
        checks.near(f"{kind}: share of computing, by its clock", run.computing, working, 0.1)
        checks.near(f"{kind}: sum of the parts", 1.0, sum(parts.values()), 0.01)
        if run.busy:
            checks.near(f"{kind}: busy, by NVML", statistics.median(run.busy), 1 - idle, 0.1)


if __name__ == "__main__":
    sys.exit(main())
