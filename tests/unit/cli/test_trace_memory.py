"""What `rightpool trace` and `rightpool profile` say of the memory in use."""

from __future__ import annotations

import io
from dataclasses import replace

from rightpool.api.trace import TraceDevicePeak, TraceMemory, TracePhase
from rightpool.cli import trace_summary
from rightpool.cli.table import Page


def printed(memory: TraceMemory) -> str:
    out = io.StringIO()
    trace_summary.print_memory(memory, Page(out))
    return out.getvalue()


def test_memory_of_a_device() -> None:
    gib = 2**30
    memory = TraceMemory(
        16 * gib,
        0.43,
        (8 * gib, 16 * gib),
        "cuda:0",
        18 * gib,
        80 * gib,
        0.62,
        TracePhase.BACKWARD,
        (8 * gib, 9 * gib, 10 * gib),
        (TraceDevicePeak("cuda:1", 2 * gib, 3 * gib), TraceDevicePeak("cuda:2", gib)),
    )
    assert printed(memory) == (
        "cuda:0: at most 16.0 GiB of 80.0 GiB (20%), after 62% of a step, in the backward pass\n"
        "▅█\n"
        "held by the framework's allocator: at most 18.0 GiB\n"
        "at the end of 3 steps: 8.0 GiB, 9.0 GiB, 10.0 GiB\n"
        "each step has ended with more than the one before, by 1.0 GiB on average: memory may leak\n"
        "cuda:1: at most 2.0 GiB, 3.0 GiB held\n"
        "cuda:2: at most 1.0 GiB\n"
    )
    for ends in ((8, 9), (8, 9, 9), (8, 9, 8), ()):
        levels = tuple(end * gib for end in ends)
        assert "leak" not in printed(replace(memory, step_ends=levels)), "two steps say little, and others do not grow"
    losses = tuple(8 * gib + 512 * step for step in range(4))
    assert "leak" not in printed(replace(memory, step_ends=losses)), "it would take millions of steps"


def test_memory_of_a_host() -> None:
    memory = TraceMemory(5 * 2**19, 0.5, (0, 5 * 2**19), "cpu", at_step=0.5, step_ends=(2**20, 2**20))
    assert printed(memory) == (
        "cpu: at most 2.5 MiB more than at the start, after 50% of a step\n"
        "▁█\n"
        "at the end of 2 steps: 1.0 MiB, 1.0 MiB\n"
    )
