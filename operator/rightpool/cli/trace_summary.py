"""What a trace says, as it is printed by `rightpool trace` and shown on the page of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from rightpool.api.trace import Trace, TraceMemory, TraceOperation, TracePhase, TraceRanks, TraceSummary
from rightpool.api.wording import how_many, memory_size, number, prefixed
from rightpool.cli.roofline import Roof, roof_of
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.profiles.profile import Profile

_PARTS: Final = {
    "Compute": "computing",
    "OverlappedCommunication": "communicating while computing",
    "ExposedCommunication": "communicating alone",
    "Memcpy": "copying",
    "Input": "waiting for data",
    "Launch": "waiting for launches",
    "Idle": "idle for other reasons",
}
_PHASES: Final = {
    TracePhase.FORWARD: "the forward pass",
    TracePhase.BACKWARD: "the backward pass",
    TracePhase.OPTIMIZER: "the optimizer",
}
_WAITS: Final = frozenset({"Input", "Launch"})
_LEVELS: Final = "▁▂▃▄▅▆▇█"
HOST: Final = "cpu"
"""PyTorch's name of the device whose memory is not known from before the trace."""


def show_ranks(ranks: TraceRanks, page: Page) -> None:
    """Print how the ranks compare, before the trace of one of them."""
    program = ranks.captured if ranks.program is None else max(ranks.program, ranks.captured)
    page.line(f"traced {ranks.captured} of {how_many(program, 'rank')}, in {how_many(ranks.pods, 'pod')}")
    waiting = next((one for one in ranks.parts if one.part == "ExposedCommunication"), None)
    if ranks.straggler is not None and waiting is not None:
        page.line(
            f"rank {ranks.straggler} holds up the others: it communicates alone for {_percent(waiting.least)} of its "
            f"time, rank {waiting.most_rank} for {_percent(waiting.most)}"
        )
    page.heading("WHAT THE TIME OF THE RANKS GOES TO")
    print_spread(ranks, page)
    if ranks.failed:
        page.heading("WITHOUT A TRACE")
        page.table(
            (Column("RANK", right=True), Column("POD"), Column("REASON"), Column("MESSAGE", wraps=True)),
            [
                (NOTHING if one.rank is None else str(one.rank), one.pod, one.reason.value, one.message)
                for one in ranks.failures
            ],
        )
        if ranks.failed > len(ranks.failures):
            page.line(f"and {ranks.failed - len(ranks.failures)} more")
    page.line()


def print_spread(ranks: TraceRanks, page: Page) -> None:
    """Print how much of their time the ranks spend in each part."""
    page.table(
        (
            Column("PART"),
            *(Column(title, right=True) for title in ("LEAST", "OF RANK", "MEDIAN", "MOST", "OF RANK")),
        ),
        [
            (
                _part(one.part, {other.part for other in ranks.parts}),
                _percent(one.least),
                str(one.least_rank),
                _percent(one.median),
                _percent(one.most),
                str(one.most_rank),
            )
            for one in sorted(ranks.parts, key=lambda one: -one.median)
        ],
    )


def traced_roof(trace: Trace, job: Job, profile: Profile | None, pools: Mapping[str, Pool]) -> Roof | None:
    """Of the chip that was traced. None where the job has left it, or where its precision or a figure of it is not
    known."""
    revision = job.state.revision
    if revision is None or revision.revision != trace.revision or profile is None:
        return None
    pool = pools.get(revision.placement.pool)
    return None if pool is None else roof_of(pool, profile.traits.precision)


def show(trace: Trace, summary: TraceSummary, page: Page, roof: Roof | None = None) -> None:
    """Print what the trace of one rank says. roof: of the chip; None where it is not known."""
    steps = "steps of an unknown number" if summary.steps is None else how_many(summary.steps, "step")
    whose = "the device" if summary.on == "Device" else "the CPU"
    rank = trace.rank if trace.ranks is None else trace.ranks.shown
    page.line(f"{steps} of rank {rank} in pod {trace.pod}: {number(float(summary.seconds))} s of {whose}")
    if summary.slowdown is not None:
        page.line(f"A step took {summary.slowdown:.1f}× as long while it was traced; shares are of a usual one.")
    if summary.cost is not None:
        page.line(f"The trace cost the program {number(float(summary.cost))} s.")
    page.heading("WHAT THE TIME GOES TO")
    rows = []
    for part in sorted(summary.parts, key=lambda one: -one.share):
        limit = "" if part.limit is None else f"without it at most {part.limit:.2f}× as fast"
        rows.append((_part(part.part, {one.part for one in summary.parts}), _percent(part.share), limit))
    page.table((Column("PART"), Column("SHARE", right=True), Column("LIMIT")), rows)
    if summary.collectives:
        page.heading("COMMUNICATION")
        columns = (Column("OPERATION"), Column("COUNT", right=True), Column("SHARE", right=True))
        page.table(
            (*columns, Column("ALONE", right=True)),
            [
                (*_operation(one), NOTHING if one.exposed is None else _percent(one.exposed))
                for one in summary.collectives
            ],
        )
    if summary.kinds:
        page.heading("KINDS OF OPERATIONS")
        page.table(
            (Column("KIND"), Column("COUNT", right=True), Column("SHARE", right=True)),
            [_operation(replace(one, name=one.name.lower())) for one in summary.kinds],
        )
    page.heading("OPERATIONS BY THEIR OWN TIME")
    _operations(summary, page, roof)
    if summary.memory is not None:
        page.heading("MEMORY IN USE")
        print_memory(summary.memory, page)


def _operations(summary: TraceSummary, page: Page, roof: Roof | None) -> None:
    columns = [Column("OPERATION"), Column("COUNT", right=True), Column("SHARE", right=True)]
    rows = [list(_operation(one)) for one in summary.operations]
    if any(one.flops_per_second or one.bytes_per_second for one in summary.operations):
        columns += (Column(title, right=True) for title in ("FLOP/S", "BYTE/S", "FLOP/BYTE"))
        for row, one in zip(rows, summary.operations, strict=True):
            row += (_rate(one.flops_per_second), _rate(one.bytes_per_second), _intensity(one))
        if roof is not None and summary.on == "Device":
            columns.append(Column("OF ITS ROOF", right=True))
            for row, one in zip(rows, summary.operations, strict=True):
                row.append(_of_roof(one, roof))
    page.table(columns, rows)


def _rate(value: float | None) -> str:
    return NOTHING if not value else prefixed(value).strip()


def _intensity(one: TraceOperation) -> str:
    if not one.flops_per_second or not one.bytes_per_second:
        return NOTHING
    return number(one.flops_per_second / one.bytes_per_second)


def _of_roof(one: TraceOperation, roof: Roof) -> str:
    """What is reached of what the chip can do at this intensity; of a copy, of its bandwidth."""
    if not one.bytes_per_second:
        return NOTHING
    if not one.flops_per_second:
        return _percent(one.bytes_per_second / roof.bandwidth)
    return _percent(one.flops_per_second / roof.at(one.flops_per_second / one.bytes_per_second))


def traced_memory(trace: Trace | None) -> TraceMemory | None:
    """None where there is no trace, or where it does not say."""
    return None if trace is None or trace.summary is None else trace.summary.memory


def print_memory(memory: TraceMemory, page: Page) -> None:
    """Print what a trace says of the memory in use."""
    where = "" if memory.device is None else f"{memory.device}: "
    more = " more than at the start" if memory.device == HOST else ""
    page.line(f"{where}at most {_of_capacity(memory)}{more}, {_when(memory)}")
    if memory.peak_bytes:
        page.line(_drawn(memory.timeline, memory.peak_bytes))
    if memory.reserved_bytes is not None:
        page.line(f"held by the framework's allocator: at most {memory_size(memory.reserved_bytes)}")
    if memory.step_ends:
        ends = ", ".join(memory_size(level) for level in memory.step_ends)
        page.line(f"at the end of {how_many(len(memory.step_ends), 'step')}: {ends}")
    if memory.growth:
        grown = memory_size(memory.growth)
        page.line(f"each step has ended with more than the one before, by {grown} on average: memory may leak")
    for other in memory.others:
        held = "" if other.reserved_bytes is None else f", {memory_size(other.reserved_bytes)} held"
        page.line(f"{other.device}: at most {memory_size(other.peak_bytes)}{held}")


def _of_capacity(memory: TraceMemory) -> str:
    if not memory.capacity_bytes:
        return memory_size(memory.peak_bytes)
    share = _percent(memory.peak_bytes / memory.capacity_bytes)
    return f"{memory_size(memory.peak_bytes)} of {memory_size(memory.capacity_bytes)} ({share})"


def _when(memory: TraceMemory) -> str:
    """In the step where that is known."""
    if memory.at_step is None:
        return f"after {_percent(memory.at)} of the time"
    phase = "" if memory.phase is None else f", in {_PHASES[memory.phase]}"
    return f"after {_percent(memory.at_step)} of a step{phase}"


def _drawn(levels: Sequence[int], most: int) -> str:
    """A column for each part of the time, as high as what was in use at most."""
    return "".join(_LEVELS[min(len(_LEVELS) - 1, level * len(_LEVELS) // most)] for level in levels)


def _part(part: str, known: Set[str]) -> str:
    """known: all parts that the trace has. Where no wait is told apart, idle time has no other reasons."""
    return "idle" if part == "Idle" and not known & _WAITS else _PARTS.get(part, part)


def _operation(one: TraceOperation) -> tuple[str, str, str]:
    return one.name, str(one.count), _percent(one.share)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "<1%"
