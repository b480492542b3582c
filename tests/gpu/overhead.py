"""How much longer a step takes with the agent in the program, for five kinds of programs on the GPU.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.overhead [--pairs 10] [--at-once 1] [--cpus N]
        [--seconds 1] [--only NAME …]

Needs torch with CUDA, and `pynvml` (nvidia-ml-py), which is a part of the cost. A pair is two processes, one with the
agent and a sidecar and one without, that take turns on the GPU, three each, in an order that changes; in between they
are stopped (SIGSTOP), the agent's thread too. Prints a Markdown table with the median of the pairs' ratios and an
interval that holds the true median in at least 95 of 100 cases, and what a reading of NVML costs. Exits 2 without a
GPU.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.gpu import machine
from tests.gpu.pod import Pod, bare_environment

PROGRAM = """
import sys, time
import torch

def encoder(layers, rows):
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True, dropout=0.0)
    net = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).cuda().bfloat16()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5, fused=True)
    batch = torch.randn(rows, 512, 1024, device="cuda", dtype=torch.bfloat16)
    def step():
        net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    return step

def transformer(): return encoder(8, 64)

def short(): return encoder(2, 22)

def small():
    net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(64)]).cuda().bfloat16()
    return net, torch.randn(64, 512, device="cuda", dtype=torch.bfloat16)

def launches():
    net, batch = small()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    def step():
        net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    return step

def capture(work):
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3): work()
    torch.cuda.current_stream().wait_stream(aside)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured): work()
    return captured

def graph():
    net, batch = small()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    def passes():
        optimizer.zero_grad(set_to_none=False)
        net(batch).float().pow(2).mean().backward()
    captured = capture(passes)
    def step():
        captured.replay()
        optimizer.step()
    return step

def whole():
    net, batch = small()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
    def all_of_it():
        net(batch).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
    return capture(all_of_it).replay

def measure(step, seconds):
    torch.cuda.synchronize()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(10): step()
        torch.cuda.synchronize()
        steps += 10
    return (time.perf_counter() - began) / steps

steps = {name: globals()[name]() for name in sys.argv[1:]}

def turn(name, seconds): return measure(steps[name], float(seconds))

def reading():
    "Processor seconds of a reading of all chips."
    from rightpool_agent import chips
    reader = chips.Reader()
    began = 0.0
    for n in range(25):
        if n == 5: began = time.thread_time()
        assert reader.read("cuda")["chips"]
        time.sleep(0.05)
    return (time.thread_time() - began) / 20

print("ready", flush=True)
for line in sys.stdin:
    what, *rest = line.split()
    print({"turn": turn, "reading": reading}[what](*rest), flush=True)
"""
_TURNS = 3
_WORDS = {
    "transformer": "a transformer, bound by the GPU",
    "short": "a small one, bound by the GPU",
    "launches": "many small kernels, bound by their launches",
    "graph": "its passes as a CUDA graph, then the optimizer",
    "whole": "all of it as a CUDA graph",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--at-once", type=int, default=1, help="pairs that start together, and then run one by one")
    parser.add_argument("--cpus", type=int, help="have programs run on so many processors once they have started")
    parser.add_argument("--seconds", type=float, default=1, help="of a turn")
    parser.add_argument("--only", nargs="+", default=list(_WORDS), choices=_WORDS)
    options = parser.parse_args()
    machine.require("torch")
    pairs: list[dict[bool, dict[str, float]]] = []
    readings: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Pod() as pod:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM)
        while len(pairs) < options.pairs:
            started = [
                {
                    agent: Run(script, options.only, pod.environment() if agent else bare_environment())
                    for agent in (True, False)
                }
                for _ in range(min(options.at_once, options.pairs - len(pairs)))
            ]
            everyone = [run for runs in started for run in runs.values()]
            try:
                for run in everyone:
                    run.wait_until_ready()
                    if options.cpus is not None:
                        run.keep_to(options.cpus)
                for runs in started:
                    pairs.append(pair := take_turns(runs, options.only, options.seconds))
                    words = ", ".join(f"{name} {pair[True][name] / pair[False][name]:.4f}" for name in options.only)
                    print(f"pair {len(pairs)}: {words}", flush=True)
                readings.append(started[0][True].ask("reading"))
            finally:
                for run in everyone:
                    run.end()
    print("| step | without the agent | with it: × without |")
    print("|---|---|---|")
    for name in options.only:
        bare = statistics.median(pair[False][name] for pair in pairs)
        ratios = sorted(pair[True][name] / pair[False][name] for pair in pairs)
        low, high = interval(ratios)
        print(f"| {_WORDS[name]} | {bare * 1e3:.3f} ms | {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}) |")
    print(f"a reading of NVML, once a second: {statistics.median(readings) * 1e3:.1f} ms of processor time")
    return 0


class Run:
    """A process that does what it is asked for, and is stopped in between."""

    def __init__(self, script: Path, names: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(script), *names],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == "ready\n", f"the program does not start: {line}"
        self._process.send_signal(signal.SIGSTOP)

    def keep_to(self, cpus: int) -> None:
        """All its threads share the first processors."""
        for thread in Path(f"/proc/{self._process.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), range(cpus))

    def ask(self, *words: str) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.send_signal(signal.SIGCONT)
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        found = float(self._process.stdout.readline())
        self._process.send_signal(signal.SIGSTOP)
        return found

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def take_turns(runs: dict[bool, Run], names: list[str], seconds: float) -> dict[bool, dict[str, float]]:
    """The median step time of each kind, with and without the agent."""
    found: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for name in names:
        turns: dict[bool, list[float]] = {True: [], False: []}
        for number in range(_TURNS + 1):
            for agent in (False, True) if number % 2 else (True, False):
                turns[agent].append(runs[agent].ask("turn", name, str(seconds)))
        for agent, times in turns.items():
            found[agent][name] = statistics.median(times[1:])  # the first one warms up
    return found


def interval(ordered: list[float]) -> tuple[float, float]:
    """The tightest two ratios between which the true median lies in 95 of 100 cases, whatever its distribution.

    With fewer than six pairs no two do; then these are the least and the most.
    """
    n = len(ordered)
    rank, outside = 0, 2 / 2**n  # chance that the median lies beyond the outermost
    while outside + 2 * math.comb(n, rank + 1) / 2**n <= 0.05:
        rank += 1
        outside += 2 * math.comb(n, rank) / 2**n
    return ordered[rank], ordered[-1 - rank]


if __name__ == "__main__":
    sys.exit(main())
