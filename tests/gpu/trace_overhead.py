"""What a trace costs a PyTorch program on the GPU: in the steps that it covers, where it begins and ends, and after it.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.trace_overhead [--seconds 50] [--only NAME …]

Needs torch with CUDA. A process of each program is traced by the agent's own code, again and again, in each way by
turns and in an order that changes, and not at all. Three steps within a trace are compared with three right before it,
and both begin with nothing left to do on the GPU; steps after the trace, 0.1 s of them, with as many before it.

Prints a Markdown table with medians over the turns, six at least, and an interval that holds the true median in at
least 95 of 100 cases. Exits 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rightpool import contract
from tests.gpu import machine
from tests.gpu.overhead import spread
from tests.gpu.pod import Pod
from tests.gpu.training_steps import STEPS, WORDS

PROGRAM = """
import json, os, sys, time
from rightpool_agent import torch_log, torch_trace

WITHIN = 3
torch_trace._ENOUGH = 60.0  # four steps, however long they are
silence = torch_log.silence

def timed(count):
    began = time.perf_counter()
    for _ in range(count): step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / count

def begin(way):
    if way == "kernels":
        torch_trace._left = 1
        return torch_trace.begin()
    torch_log.silence = silence if way == "memory" else lambda: False
    return torch_trace.begin_requested()

def traced(way):
    session = begin(way)
    assert not isinstance(session, str) and session is not None, session
    first = timed(1)
    assert session.profiler is not None, "its hook has begun the trace"
    within = timed(WITHIN)
    assert not session.ended
    last = timed(1)
    assert session.ended
    path = "/tmp/rightpool-trace-%d.json" % os.getpid()
    began = time.perf_counter()
    assert torch_trace.finish(session, path), session.reason
    written, size = time.perf_counter() - began, os.path.getsize(path)
    os.unlink(path)
    return {"within": within, "around": first + last, "written": written, "size": size}

name, ways, seconds = sys.argv[1], sys.argv[2].split(","), float(sys.argv[3])
step = steps[name]()
timed(10)
count = max(1, round(0.1 / timed(3)))
for way in ways: way == "none" or traced(way)
turns, began = [], time.monotonic()
while len(turns) < 6 or time.monotonic() - began < seconds:
    turns.append({})
    for way in ways:
        before, alone = timed(count), timed(WITHIN)
        one = {"within": timed(WITHIN)} if way == "none" else traced(way)
        turns[-1][way] = {**one, "alone": alone, "before": before, "after": timed(count)}
    ways = ways[1:] + ways[:1] if len(turns) % len(ways) else ways[::-1]
print(json.dumps(turns))
"""
WAYS = {
    "none": "no trace",
    "kernels": "the agent's own, of kernels",
    "operators": "on request, without memory",
    "memory": "on request",
}
_PROGRAMS = ("launches", "launches-long", "short", "transformer", "accumulating")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=50, help="of a program")
    parser.add_argument("--only", nargs="+", default=list(_PROGRAMS), choices=_PROGRAMS)
    options = parser.parse_args()
    machine.require("torch")
    print("| step | takes | turns | trace | in it, × before | begin and end | written in | file | after it, × before |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.only:
        for row in rows(name, measure(name, options.seconds)):
            print(row, flush=True)
    return 0


def measure(name: str, seconds: float) -> list[dict[str, Any]]:
    """Of each turn what each way of tracing took."""
    with tempfile.TemporaryDirectory() as folder, Pod() as pod:
        script = Path(folder) / "program.py"
        script.write_text(STEPS + PROGRAM)
        # The schedule takes no trace of its own; what it asks before one says that there are several processes.
        environment = pod.environment(**{contract.ENV_TRACE: "Off", "WORLD_SIZE": "2"})
        command = [sys.executable, str(script), name, ",".join(WAYS), str(seconds)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def rows(name: str, turns: list[dict[str, Any]]) -> list[str]:
    """Of the table: one for each way."""
    made = []
    for way, words in WAYS.items():
        taken = [one[way] for one in turns]
        around = written = size = "–"
        if way != "none":
            around = f"{statistics.median(one['around'] - 2 * one['alone'] for one in taken) * 1e3:.0f} ms"
            written = f"{statistics.median(one['written'] for one in taken) * 1e3:.0f} ms"
            size = f"{statistics.median(one['size'] for one in taken) / 1e6:.1f} MB"
        cells = (
            WORDS[name],
            f"{statistics.median(one['alone'] for one in taken) * 1e3:.2f} ms",
            str(len(turns)),
            words,
            spread([one["within"] / one["alone"] for one in taken]),
            around,
            written,
            size,
            spread([one["after"] / one["before"] for one in taken]),
        )
        made.append(f"| {' | '.join(cells)} |")
    return made


if __name__ == "__main__":
    sys.exit(main())
