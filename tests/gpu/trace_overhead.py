"""How much slower a launch-bound program is after one and after two of the agent's traces, with and without teardown.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.trace_overhead [--runs 3] [--seconds 2]

Needs torch with CUDA. Each run is a process that measures its step time, lets the agent trace it, measures again, and
once more; the agent itself takes one trace of a process. In one run of three the agent is kept from asking for the
teardown of CUPTI, and in one nothing is traced. Prints a Markdown table. Exits 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import Pod

PROGRAM = """
import json, os, sys, time
if sys.argv[1] == "attached": os.putenv = lambda *_: None
import torch
from rightpool_agent import torch_trace

net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(64)]).cuda().bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
batch = torch.randn(64, 512, device="cuda", dtype=torch.bfloat16)

def step():
    net(batch).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

def rate(seconds):
    torch.cuda.synchronize()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step()
        steps += 1
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps

def trace():
    torch_trace._taken = False
    session = torch_trace.begin()
    while not session.ended: step()
    path = "/tmp/rightpool-trace-%d.json" % os.getpid()
    try:
        assert torch_trace.finish(session, path)
        with open(path) as file:
            return sum(event.get("cat") == "kernel" for event in json.load(file)["traceEvents"])
    finally:
        if os.path.exists(path): os.unlink(path)

seconds = float(sys.argv[2])
rate(seconds)
found = {"steps": [rate(seconds)], "kernels": []}
for _ in range(2):
    if sys.argv[1] != "none": found["kernels"].append(trace())
    found["steps"].append(rate(seconds))
print(json.dumps(found))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    machine.require("torch")
    ways = {"none": "no trace", "attached": "CUPTI left attached", "torn": "CUPTI torn down, as the agent asks for"}
    found: dict[str, list[list[float]]] = {way: [] for way in ways}
    kernels = set()
    with tempfile.TemporaryDirectory() as folder, Pod() as pod:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM)
        # The schedule takes no trace of its own; what it asks before one says that there are several processes.
        environment = pod.environment(**{contract.ENV_TRACE: "Off", "WORLD_SIZE": "2"})
        for _ in range(options.runs):
            for way in ways:
                command = [sys.executable, str(script), way, str(options.seconds)]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                printed = json.loads(done.stdout)
                found[way].append(printed["steps"])
                kernels.update(printed["kernels"])
    print(f"kernels in a trace: {min(kernels)} to {max(kernels)}")
    print("| | step before | after one trace: × before, median (least to most) | after two |")
    print("|---|---|---|---|")
    for way, words in ways.items():
        before = statistics.median(run[0] for run in found[way])
        cells = [spread([run[after] / run[0] for run in found[way]]) for after in (1, 2)]
        print(f"| {words}, {options.runs} runs | {before * 1e3:.2f} ms | {cells[0]} | {cells[1]} |")
    return 0


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


if __name__ == "__main__":
    sys.exit(main())
