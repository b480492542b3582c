"""How long a program waits for cores that others have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import pytest

from rightpool.cli.bench.cores import CoreTimes, core_times
from rightpool_profiler.report import BUCKETS, Report, parse

BEFORE = CoreTimes(waited=1.0, stepping=5.0, program=6.0, machine=100.0)


@pytest.mark.parametrize(
    ("now", "taken"),
    [
        (CoreTimes(waited=5.0, stepping=11.0, program=12.0, machine=116.0), 4.0),  # others had the rest
        (CoreTimes(waited=5.0, stepping=11.0, program=22.0, machine=116.0), 0.0),  # its own threads had it
        (CoreTimes(waited=5.0, stepping=11.0, program=17.0, machine=116.0), 2.0),  # half of it
        (CoreTimes(waited=1.0, stepping=15.0, program=16.0, machine=120.0), 0.0),  # it never waited
        (CoreTimes(waited=0.0, stepping=0.0, program=0.0, machine=90.0), 0.0),  # begun anew
    ],
)
def test_waiting_counts_as_far_as_others_ran_meanwhile(now: CoreTimes, taken: float) -> None:
    assert now.taken_since(BEFORE) == pytest.approx(taken)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not say how long threads wait")
def test_two_programs_on_one_core_take_it_from_each_other() -> None:
    core = min(os.sched_getaffinity(0))
    agent = Path(__file__).parents[3] / "profiler_sidecar/agent"
    program = f"""
import os, sys, time
sys.path.append({str(agent)!r})
from rightpool_agent.process import facts
os.sched_setaffinity(0, {{{core}}})
def printed():
    one = facts()
    print(one["thread_cpu"], one["thread_waited"], flush=True)
sys.stdin.readline()
printed()
end = time.monotonic() + 0.5
while time.monotonic() < end: pass
printed()
while True: pass
"""
    command = [sys.executable, "-c", program]
    both = [subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) for _ in range(2)]
    try:
        for one in both:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        times = [core_times(both[0].pid, [printed(both[0])]) for _ in range(2)]
    finally:
        for one in both:
            one.kill()
            one.communicate()
    before, after = times
    assert before is not None and after is not None
    assert 0.1 < after.taken_since(before) <= after.waited - before.waited


def printed(program: subprocess.Popen[str]) -> Report:
    assert program.stdout is not None
    cpu, waited = map(float, program.stdout.readline().split())
    return report(program.pid, cpu, waited)


def report(pid: int, cpu: float | None = None, waited: float | None = None) -> Report:
    words = {"pid": pid, "start": 0, "rank": 0, "at": 0.0, "framework": "torch", "steps": 1, "seconds": 1.0, "cpu": 1.0}
    return replace(
        parse(json.dumps({**words, "counts": [0] * (len(BUCKETS) + 1)}).encode()), thread_cpu=cpu, thread_waited=waited
    )


def test_what_is_not_known() -> None:
    assert core_times(os.getpid(), [report(1)]) is None
    assert core_times(os.getpid(), []) is None
