"""What a trace costs a program on the GPU: in the steps that it covers, and after it.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.trace_overhead [--runs 3] [--seconds 1] [--attached]

Needs torch or jax with CUDA, and does what it can with those that are there. Each run is a process for each way of
tracing, which measures the step time of some programs, has each traced by the agent's own code, measures again, and
once more. Steps that are traced are compared with steps before, both waited for one by one; the first and the last,
which begin and end the trace, apart. With --attached the agent is also kept from asking for the teardown of CUPTI.
Prints a Markdown table, with the median and the least and the most of the runs. Exits 2 without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import Pod

_MEASURE = """
def waited(count):
    times = []
    for _ in range(count):
        began = time.perf_counter()
        step(); wait()
        times.append(time.perf_counter() - began)
    return times

def rate():
    wait()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step()
        steps += 1
    wait()
    return (time.perf_counter() - began) / steps

def median(times): return sorted(times)[len(times) // 2]

def trace():
    "Times of the steps that lie within a trace, and of those that begin and end it."
    session, within, around = begin(), [], []
    while not session.ended:
        before = session.profiler
        (taken,) = waited(1)
        if session.profiler is not before or session.ended: around.append(taken)
        elif before is not None: within.append(taken)
    end(session)
    return within, around

def measure():
    rate()
    found = {"steps": [rate()], "within": None, "still": None}
    for turn in range(2):
        alone = median(waited(20))
        if way != "none":
            within, around = trace()
            found["within"] = found["within"] or median(within) / alone
            found["still"] = found["still"] or sum(around) - len(around) * alone
        found["steps"].append(rate())
    return found
"""
PROGRAMS = {
    "torch": """
import json, os, sys, time
way, seconds = sys.argv[1], float(sys.argv[2])
if way == "attached": os.putenv = lambda *_: None
import torch
from rightpool_agent import torch_trace

def begin():
    torch_trace._taken = False
    return torch_trace.begin_requested() if way == "requested" else torch_trace.begin()

def end(session):
    path = "/tmp/rightpool-trace-%d.json" % os.getpid()
    assert torch_trace.finish(session, path)
    os.unlink(path)

wait = torch.cuda.synchronize

def small():
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(64)]).cuda().bfloat16()
    return net, torch.randn(64, 512, device="cuda", dtype=torch.bfloat16)

def transformer(rows):
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True, dropout=0.0)
    net = torch.nn.TransformerEncoder(layer, 2 if rows < 32 else 8, enable_nested_tensor=False).cuda().bfloat16()
    return net, torch.randn(rows, 512, 1024, device="cuda", dtype=torch.bfloat16)

found = {}
for name, make in (("launch", small), ("short", lambda: transformer(22)), ("long", lambda: transformer(64))):
    net, batch = make()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=True)
    def step():
        net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    found[name] = measure()
print(json.dumps(found))
""",
    "jax": """
import json, sys, time
way, seconds = sys.argv[1], float(sys.argv[2])
import jax, jax.numpy as jnp
from rightpool_agent import jax_gpu_trace

def begin():
    return jax_gpu_trace.begin_requested()

def end(session): assert session.take(), session.reason

keys = jax.random.split(jax.random.key(0), 9)

def loss(w, x):
    for a in w: x = jnp.tanh(x @ a)
    return (x.astype(jnp.float32) ** 2).mean()

@jax.jit
def train(w, x): return [a - 1e-3 * g for a, g in zip(w, jax.grad(loss)(w, x))]

found = {}
for name, width, rows in (("launch", 256, 64), ("short", 4096, 4096)):
    w = [jax.random.normal(key, (width, width), jnp.bfloat16) * 0.02 for key in keys[:8]]
    x = jax.random.normal(keys[8], (rows, width), jnp.bfloat16)
    def step():
        global w
        w = train(w, x)
    def wait(): jax.block_until_ready(w)
    found[name] = measure()
print(json.dumps(found))
""",
}
_WORDS = {
    "torch": {
        "none": "no trace",
        "automatic": "the agent's own, of kernels",
        "requested": "on request, operators too",
        "attached": "CUPTI left attached",
    },
    "jax": {"none": "no trace", "requested": "on request"},
}
_STEPS = {"launch": "launches", "short": "the GPU, a short step", "long": "the GPU, a long step"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--attached", action="store_true")
    options = parser.parse_args()
    frameworks = [name for name in PROGRAMS if importlib.util.find_spec(name) is not None]
    for name in frameworks or ["torch"]:
        machine.require(name)
    print("| bound by | trace | step before | in it, × before | begin and end | after one, × before | after two |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for framework in frameworks:
        ways = [way for way in _WORDS[framework] if way != "attached" or options.attached]
        for row in rows(framework, ways, options.runs, options.seconds):
            print(row, flush=True)
    return 0


def rows(framework: str, ways: list[str], runs: int, seconds: float) -> list[str]:
    """Of the table: a program and a way of tracing each."""
    found = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, Pod() as pod:
        script = Path(folder) / "program.py"
        script.write_text(_MEASURE + PROGRAMS[framework])
        # The schedule takes no trace of its own; what it asks before one says that there are several processes.
        environment = pod.environment(**{contract.ENV_TRACE: "Off", "WORLD_SIZE": "2"})
        for _ in range(runs):
            for way in ways:
                command = [sys.executable, str(script), way, str(seconds)]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                for name, one in json.loads(done.stdout).items():
                    found[name, way].append(one)
    made = []
    for (name, way), some in found.items():
        before = statistics.median(one["steps"][0] for one in some)
        within = "–" if way == "none" else spread([one["within"] for one in some])
        still = "–" if way == "none" else f"{statistics.median(one['still'] for one in some) * 1e3:.0f} ms"
        after = [spread([one["steps"][turn] / one["steps"][0] for one in some]) for turn in (1, 2)]
        made.append(
            f"| {framework}, {_STEPS[name]} | {_WORDS[framework][way]} | {before * 1e3:.2f} ms | {within} | {still} "
            f"| {after[0]} | {after[1]} |"
        )
    return sorted(made)


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


if __name__ == "__main__":
    sys.exit(main())
