"""Ends programs on a GPU within a trace, and right after one, in each way in which programs end, and sees that they do.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_trace_end [--times 5] [--beside 12] [--only WAY …]

Traces are those that a user asks for, and the agent's own of a job of several processes. There is no sidecar. Prints a
Markdown table, and below it what becomes of programs without the agent that end within a profiler of their own, or
fork after it, in ways in which PyTorch itself does not bear that. Takes 4 minutes with 16 processors, in proportion to
`--times`. Exits 1 if a program with the agent has not ended, or not as it would alone, and 2 without a GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import bare_environment

_PROGRAM: Final = """
import os, signal, sys, threading, time
import torch
way, moment = sys.argv[1:3]
device = "cuda" if torch.cuda.is_available() else "cpu"
net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]).to(device)
optimizer = torch.optim.AdamW(net.parameters())
batch = torch.randn(32, 64, device=device)
late = time.monotonic() + 90

def reached():
    tracer = sys.modules.get("rightpool_agent.torch_trace")
    session = tracer and tracer.session
    if session is not None and session.began:
        met.append(session)
    if moment == "open":
        return bool(met)
    return bool(met) and met[0].ended

met = []

def train():
    while not reached():
        if time.monotonic() > late:
            print("there was no trace", flush=True)
            os._exit(3)
        net(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if not met:
            time.sleep(0.02)

if way == "handler":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if way == "joined":
    one = threading.Thread(target=train)
    one.start()
    one.join()
else:
    train()
    if moment == "open":
        net(batch).square().mean().backward()
if way == "fork":
    child = os.fork()
    if not child:
        os._exit(0)  # as children of multiprocessing do
    os.waitpid(child, 0)
print("ends", flush=True)
if way == "exception":
    raise RuntimeError("of the program")
if way == "_exit":
    os._exit(7)
if way in ("signal", "handler"):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(1)
"""
WAYS: Final = {"end": 0, "exception": 1, "_exit": 7, "signal": -15, "handler": 0, "fork": 0, "joined": 0}
_PLAIN: Final = """
import ctypes, os, sys, threading, time
import torch, torch.profiler
way = sys.argv[1]
net = torch.nn.Linear(64, 64).cuda()
begun = threading.Event()

def work(on):
    if way != "child":
        profiler = torch.profiler.profile()
        profiler.start()
    while True:
        net(torch.randn(32, 64, device="cuda")).square().mean().backward()
        begun.set()
        if not on:
            break
    if way == "profiled child":
        profiler.stop()
    return way != "child" and profiler

if way == "daemon":
    threading.Thread(target=work, args=(True,), daemon=True).start()
    begun.wait()
else:
    kept = work(False)
if "child" in way:
    child = os.fork()
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
if way == "libc":
    ctypes.CDLL(None).exit(0)
"""
_ALONE: Final = {
    "child": "exit of a child that is forked after work on the GPU",
    "profiled child": "the same, after a profile that has ended",
    "daemon": "exit while a daemon thread is within a profile",
    "libc": "exit of the C library within a profile",
}
_MOMENTS: Final = ("open", "ended")
_KINDS: Final = ("requested", "own")
_LIMIT: Final = 25.0  # seconds from the program's last line to its end; it takes one or two

Case = tuple[str, str, str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--beside", type=int, default=12, help="programs at once")
    parser.add_argument("--only", nargs="+", default=list(WAYS), choices=WAYS)
    options = parser.parse_args()
    machine.require("torch")
    cases: list[Case] = list(itertools.product(options.only, _MOMENTS, _KINDS))
    with tempfile.TemporaryDirectory(prefix="rightpool-", dir="/tmp") as folder:
        installed = Path(folder) / "installed"
        installed.mkdir()
        ours = {**os.environ, contract.ENV_SHARED_DIR: str(installed)}
        subprocess.run([sys.executable, "-m", "rightpool_profiler", "install"], env=ours, check=True)
        with ThreadPoolExecutor(options.beside) as threads:
            numbered = list(enumerate(cases * options.times))
            ended = list(threads.map(lambda one: end(installed, Path(folder) / str(one[0]), one[1]), numbered))
            alone = list(threads.map(end_alone, _ALONE))
    print("| the program ends by | the trace | asked for by | ended | longest, s | otherwise |")
    print("|---|---|---|---|---|---|")
    failed = 0
    for case in cases:
        found = [one for (_, of), one in zip(numbered, ended, strict=True) if of == case]
        bad = [why for _, why in found if why]
        failed += len(bad)
        longest, right = max(seconds for seconds, _ in found), len(found) - len(bad)
        print(f"| {' | '.join(case)} | {right} of {len(found)} | {longest:.1f} | {'; '.join(bad[:2])} |")
    print("\n| PyTorch without the agent | |\n|---|---|")
    for words, came in zip(_ALONE.values(), alone, strict=True):
        print(f"| {words} | {came} |")
    return 1 if failed else 0


def end_alone(way: str) -> str:
    """What becomes of a program without the agent."""
    command = [sys.executable, "-c", _PLAIN, way]
    quiet = subprocess.DEVNULL
    program = subprocess.Popen(command, env=bare_environment(), stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        return f"ends with {program.wait(2 * _LIMIT)}"
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        return "does not end"


def end(installed: Path, shared: Path, case: Case) -> tuple[float, str]:
    """How long the program's end took, and what was wrong with it."""
    way, moment, kind = case
    for name in (contract.TRACE_DIR, contract.COMMAND_DIR):
        (shared / Path(name).name).mkdir(parents=True)
    (shared / "agent").symlink_to(installed / "agent")
    more = {"WORLD_SIZE": "2"} if kind == "own" else {}
    if kind == "requested":
        request = {"id": "end", "rank": 0, "at": time.time()}
        (shared / Path(contract.COMMAND_DIR).name / "trace.json").write_text(json.dumps(request))
    environment = {
        **bare_environment(),
        "PYTHONPATH": str(shared / "agent"),
        contract.ENV_SHARED_DIR: str(shared),
        contract.ENV_TRACE: "Auto" if kind == "own" else "Off",
        **more,
    }
    command = [sys.executable, "-c", _PROGRAM, way, moment]
    with (shared / "out").open("w+") as out:
        program = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=out, text=True)
        assert program.stdout is not None
        last = program.stdout.readline().strip()
        began = time.monotonic()
        try:
            code = program.wait(_LIMIT)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
            return _LIMIT, f"does not end after {last!r}"
        took = time.monotonic() - began
        out.seek(0)
        errors = out.read()
    if (last, code) != ("ends", WAYS[way]):
        return took, f"{last!r}, exit code {code}: {errors[-200:]!r}"
    return took, f"says {errors[-200:]!r}" if "rightpool" in errors else ""


if __name__ == "__main__":
    sys.exit(main())
