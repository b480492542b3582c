"""How much longer a step takes with the agent in the program, for several kinds of programs on the GPU.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.overhead [--seconds 50] [--only NAME …]

Needs torch with CUDA, and `pynvml` (nvidia-ml-py), which is a part of the cost. Two processes of a program differ by
more than the agent costs, and so do two seconds of one. So one process is compared with itself, in short blocks of
equally many steps: with the agent, without it, and with the agent while its thread makes a report, as it does once a
second. Without it, its hooks are out of PyTorch's functions and classes, its thread waits, and the sidecar is stopped
(SIGSTOP). A turn has one block of each kind and a second one without it, in an order that changes.

Prints a Markdown table with medians over the turns, and an interval that holds the true median in at least 95 of 100
cases: of the ratio of the blocks without a report, of the time that a report adds, and what both make together where a
report comes each second. The last column compares the two blocks without the agent. Exits 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.gpu import machine
from tests.gpu.pod import Pod
from tests.gpu.training_steps import STEPS, WORDS

PROGRAM = """
import json, os, signal, sys, threading, time, types

class Agent:
    "What is of the agent in this process, and the sidecar beside it. It is there to begin with."

    def __init__(self, sidecar):
        self.sidecar, self.asked, self.idle = sidecar, threading.Semaphore(0), threading.Event()
        optimizers = sys.modules["torch.optim.optimizer"]
        tables = (optimizers._global_optimizer_post_hooks, optimizers._global_optimizer_pre_hooks)
        self.hooks = [(table, dict(table)) for table in tables]
        self.places = list(places())
        from rightpool_agent import process, reporter
        facts = process.facts
        def when_asked():
            self.idle.set()
            self.asked.acquire()
            return facts()
        process.facts, reporter.PERIOD = when_asked, 0.0  # a report of the agent's thread begins with it
        self.idle.wait()

    def come(self):
        for table, ours in self.hooks: table.update(ours)
        for owner, name, ours in self.places: setattr(owner, name, ours)
        os.kill(self.sidecar, signal.SIGCONT)

    def go(self):
        for table, _ in self.hooks: table.clear()
        for owner, name, ours in self.places: setattr(owner, name, ours.__wrapped__)
        os.kill(self.sidecar, signal.SIGSTOP)

    def report(self):
        self.idle.clear()
        self.asked.release()

def places():
    "(owner, name, function) of each function of the agent's that has taken the place of one of PyTorch's."
    seen = set()
    modules = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] == "torch"]
    for module in modules:
        classes = [one for one in list(vars(module).values()) if issubclass(type(one), type)]
        for owner in (module, *classes):
            if id(owner) in seen: continue
            seen.add(id(owner))
            for name, value in list(vars(owner).items()):
                if type(value) is not types.FunctionType or not hasattr(value, "__wrapped__"): continue
                if value.__globals__["__name__"].startswith("rightpool_agent"): yield owner, name, value

def block(kind):
    "Seconds."
    agent.go() if kind in ("without", "again") else agent.come()
    for _ in range(warm): step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    if kind == "report": agent.report()
    for _ in range(count): step()
    torch.cuda.synchronize()
    took = time.perf_counter() - began
    agent.idle.wait()
    return took

def reading():
    "Processor seconds of a reading of all chips."
    from rightpool_agent import chips
    reader = chips.Reader()
    began = 0.0
    for n in range(25):
        if n == 5: began = time.thread_time()
        reader.read("cuda")
        time.sleep(0.05)
    return (time.thread_time() - began) / 20

name, seconds, sidecar = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
step = steps[name]()
for _ in range(20): step()
agent, count, warm = Agent(sidecar), 10, 1
block("report")
count = max(2, round(0.6 / block("with")))  # 0.06 s, from which ten steps follow
warm = 1 + count // 10
kinds, turns, began = ["without", "with", "report", "again"], [], time.monotonic()
while time.monotonic() - began < seconds:
    turns.append({kind: block(kind) for kind in kinds})
    kinds = kinds[1:] + kinds[:1] if len(turns) % 4 else kinds[::-1]
agent.come()
found = {"turns": turns, "count": count, "reading": reading(), "places": len(agent.places)}
agent.asked.release(9)  # its thread ends with the program
print(json.dumps(found))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=50, help="of a program")
    parser.add_argument("--only", nargs="+", default=list(WORDS), choices=WORDS)
    options = parser.parse_args()
    machine.require("torch")
    print("| step | without the agent | turns | with it, × without | a report adds | together | without it, twice |")
    print("|---|---|---|---|---|---|---|", flush=True)
    readings = []
    for name in options.only:
        found = measure(name, options.seconds)
        readings.append(found.reading)
        print(found.row(WORDS[name]), flush=True)
    print(f"a reading of NVML, once a second: {statistics.median(readings) * 1e3:.1f} ms of processor time")
    return 0


@dataclass(frozen=True)
class Measured:
    """Of one program."""

    turns: list[dict[str, float]]
    """Seconds of each kind of block."""
    count: int
    """Steps of a block."""
    reading: float
    """Processor seconds of a reading of NVML."""

    def row(self, words: str) -> str:
        """Of the table."""
        bare = [(one["without"] + one["again"]) / 2 for one in self.turns]
        ratios = sorted(one["with"] / other for one, other in zip(self.turns, bare, strict=True))
        added = sorted(one["report"] - one["with"] for one in self.turns)
        twice = sorted(one["again"] / one["without"] for one in self.turns)
        low, high = interval(ratios)
        less, more = interval(added)
        middle, most = statistics.median(ratios), statistics.median(added)
        cells = (
            words,
            f"{statistics.median(bare) / self.count * 1e3:.2f} ms",
            str(len(self.turns)),
            spread(ratios),
            f"{most * 1e3:.1f} ms ({less * 1e3:.1f} to {more * 1e3:.1f})",
            f"{middle * (1 + most):.4f} ({low * (1 + less):.4f} to {high * (1 + more):.4f})",
            spread(twice),
        )
        return f"| {' | '.join(cells)} |"


def measure(name: str, seconds: float) -> Measured:
    """Run the program."""
    with tempfile.TemporaryDirectory() as folder, Pod() as pod:
        script = Path(folder) / "program.py"
        script.write_text(STEPS + PROGRAM)
        command = [sys.executable, str(script), name, str(seconds), str(pod.sidecar.pid)]
        done = subprocess.run(command, env=pod.environment(), stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["places"], "the agent is not in the program"
    return Measured(found["turns"], found["count"], found["reading"])


def spread(ratios: list[float]) -> str:
    """The median with its interval."""
    ordered = sorted(ratios)
    low, high = interval(ordered)
    return f"{statistics.median(ordered):.4f} ({low:.4f} to {high:.4f})"


def interval(ordered: list[float]) -> tuple[float, float]:
    """The tightest two of them between which the true median lies in 95 of 100 cases, whatever its distribution.

    Of fewer than six no two do; then these are the least and the most.
    """
    n = len(ordered)
    rank, outside = 0, 2  # of 2**n cases, in which the median lies beyond the outermost
    while rank + 1 < n / 2 and outside + 2 * math.comb(n, rank + 1) <= 2**n // 20:
        rank += 1
        outside += 2 * math.comb(n, rank)
    return ordered[rank], ordered[-1 - rank]


if __name__ == "__main__":
    sys.exit(main())
