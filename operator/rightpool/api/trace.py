"""A trace that a user has asked for by the annotation rightpool.dev/trace, and what it says."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.model import ATOMIC
from rightpool.api.record import Record
from rightpool.api.units import WORD, Count, Figure, Share, Size, Total, UnixTime
from rightpool.api.value_object import value_object
from rightpool.contract import TRACE_ALL

MAX_COLLECTIVES: Final = 8
MAX_OPERATIONS: Final = 10
MAX_KINDS: Final = 6
MAX_PARTS: Final = 8
MAX_FAILURES: Final = 8
MAX_TIMELINE: Final = 24
MAX_STEP_ENDS: Final = 16
MAX_DEVICES: Final = 8
SLOWEST_LEAK: Final = 10_000
"""Steps in which the memory in use doubles."""
MAX_RANK: Final = 1_000_000

_VALUE: Final = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)(?::([0-9]{1,7}|" + TRACE_ALL + "))?")


class TraceState(StrEnum):
    """How far a trace is."""

    WAITING = "Waiting"  # the sidecars are asked, or other traces are taken first
    CAPTURING = "Capturing"  # a process records its steps, or the sidecar reads what it has recorded
    CAPTURED = "Captured"
    FAILED = "Failed"

    @property
    def over(self) -> bool:
        """Whether nothing more comes of the trace."""
        return self in (TraceState.CAPTURED, TraceState.FAILED)


class TraceReason(StrEnum):
    """Why there is no trace. Those that the sidecar says are in contract.TRACE_REASONS, too."""

    INVALID_REQUEST = "InvalidRequest"  # the annotation's value is not ID, ID:RANK or ID:all
    NO_PROFILER = "NoProfiler"  # spec.profiling.mode is Off
    NOT_RUNNING = "NotRunning"  # the job has no running pods
    POD_GONE = "PodGone"  # the pod that was traced has ended, or the job was moved
    TIMED_OUT = "TimedOut"  # no sidecar has served the request in time
    NO_RANK = "NoRank"  # no process has this rank
    NO_AGENT = "NoAgent"  # no process reports to the sidecar
    NO_STEPS = "NoSteps"  # the program made no steps in time
    STEP_TOO_LONG = "StepTooLong"  # the trace of a step may not fit into the program's memory
    UNSUPPORTED_FRAMEWORK = "UnsupportedFramework"  # neither PyTorch nor JAX, or on other chips
    UNSUPPORTED_VERSION = "UnsupportedVersion"  # PyTorch, its CUDA, or JAX is too old
    JAX_ON_GPU = "JaxOnGPU"  # a trace may end the program, as it computes from several threads
    NO_MEMORY = "NoMemory"  # the program's container has too little left for what is recorded
    PROGRAM_PROFILES = "ProgramProfiles"  # the program runs a profiler of its own
    CAPTURE_FAILED = "CaptureFailed"  # the framework's profiler, or the sidecar, failed
    TOO_LARGE = "TooLarge"  # the trace is larger than the sidecar keeps
    NO_SPACE = "NoSpace"  # a volume of the pod is full
    UNREADABLE = "Unreadable"  # the file is no trace that can be summarised
    TOO_MANY_RANKS = "TooManyRanks"  # of all ranks, only the first of a pod are traced


@value_object
class TraceRequest:
    """What the annotation asks for."""

    id: str
    """Of the request. That of a value that can't be read is made of its digest, so that it is refused once."""

    rank: int | None = 0
    """Of the process that is traced; None for all."""

    valid: bool = True
    """Whether the value could be read."""


def read_request(value: str) -> TraceRequest:
    """The annotation's value, ID, ID:RANK or ID:all. An id has up to 63 letters, digits, '-', '_' and '.', and begins
    and ends with a letter or a digit."""
    match = _VALUE.fullmatch(value.strip())
    if match is not None and match[2] == TRACE_ALL:
        return TraceRequest(match[1], None)
    rank = 0 if match is None or match[2] is None else int(match[2])
    if match is None or rank > MAX_RANK:
        digest = hashlib.sha256(value.encode("utf-8", "replace")).hexdigest()
        return TraceRequest(f"invalid-{digest[:12]}", valid=False)
    return TraceRequest(match[1], rank)


@value_object
class TracePart(Record):
    """One part of the time that was traced. All parts are together the whole."""

    part: str
    """Compute, OverlappedCommunication, ExposedCommunication, Memcpy, Input, Launch or Idle."""

    share: Share
    """Of the time."""

    limit: Figure | None = None
    """How many times faster the program is at most without this part: 1 / (1 - share), by Amdahl's law. Absent for
    communication that is overlapped, and for a part that is nearly all."""


@value_object
class TraceOperation(Record):
    """What all operations of one name take."""

    name: str
    """As the profiler calls it, cut at 80 characters."""

    count: Count
    """How many there are in the trace."""

    share: Share
    """Of the time that was traced. Operations at the same time each count, so that shares may sum to more than 1."""

    exposed: Share | None = None
    """Of a collective: the share of the time in which it runs and nothing is computed."""

    flops_per_second: Figure | None = None
    """Floating-point operations a second while it runs. Absent where the trace does not say."""

    bytes_per_second: Figure | None = None
    """Bytes of memory that it reads and writes a second, likewise. Both together are its point in the roofline model;
    of PyTorch's matrix products each operand and the result count once, so that it is the rightmost there can be."""


class TracePhase(StrEnum):
    """What a program does at a moment of its step."""

    FORWARD = "Forward"
    BACKWARD = "Backward"
    OPTIMIZER = "Optimizer"


@value_object
class TraceDevicePeak(Record):
    """The memory in use on one device of several."""

    device: str
    """As the framework calls it, or its allocator."""

    peak_bytes: Total
    """In use at most."""

    reserved_bytes: Total | None = None
    """That the framework's allocator holds of the device at most. Absent where the trace does not say."""


@value_object
class TraceMemory(Record):
    """The memory in use over the time that was traced: of the device that has most, else of the host. That of PyTorch's
    host is what the traced steps have allocated themselves, and not freed."""

    peak_bytes: Total
    """In use at most."""

    at: Share
    """When, as a share of the time."""

    timeline: Annotated[tuple[Total, ...], Field(max_length=MAX_TIMELINE, json_schema_extra=ATOMIC)] = ()
    """Bytes in use at most in each of as many equal parts of the time."""

    device: str | None = None
    """As the framework calls it, or its allocator: `cuda:0`, or `cpu` for PyTorch's host."""

    reserved_bytes: Total | None = None
    """That the framework's allocator holds of the device at most. Absent where the trace does not say."""

    capacity_bytes: Total | None = None
    """Memory of the device. Absent where the trace does not say."""

    at_step: Share | None = None
    """When the peak is, as a share of the step that it is in. Absent where the trace does not say."""

    phase: Annotated[TracePhase | None, WORD] = None
    """What the program does then: Forward, Backward or Optimizer. Absent where the trace does not say."""

    step_ends: Annotated[tuple[Total, ...], Field(max_length=MAX_STEP_ENDS, json_schema_extra=ATOMIC)] = ()
    """Bytes in use at the end of each step, which is the start of the next one."""

    others: Annotated[tuple[TraceDevicePeak, ...], Field(max_length=MAX_DEVICES, json_schema_extra=ATOMIC)] = ()
    """Further devices of the process, those that have most first."""

    @property
    def growth(self) -> float:
        """Bytes that a step leaves behind, where each of three at least has ended with more than the one before, and so
        much that the peak doubles in SLOWEST_LEAK steps; else 0. A list of losses is no leak."""
        ends = self.step_ends
        if len(ends) < 3 or not all(before < after for before, after in pairwise(ends)):
            return 0.0
        growth = (ends[-1] - ends[0]) / (len(ends) - 1)
        return growth if growth * SLOWEST_LEAK >= self.peak_bytes else 0.0


@value_object
class TraceSummary(Record):
    """What the time of the traced steps went to, on one process."""

    on: str
    """Device or Host: whose time it is."""

    seconds: Figure
    """The time that was traced, seconds."""

    steps: Count | None = None
    """Optimizer steps in it. Absent where the trace does not say."""

    parts: Annotated[tuple[TracePart, ...], Field(max_length=MAX_PARTS, json_schema_extra=ATOMIC)] = ()
    """What the time went to."""

    collectives: Annotated[tuple[TraceOperation, ...], Field(max_length=MAX_COLLECTIVES, json_schema_extra=ATOMIC)] = ()
    """Communication by kind, what takes most first."""

    operations: Annotated[tuple[TraceOperation, ...], Field(max_length=MAX_OPERATIONS, json_schema_extra=ATOMIC)] = ()
    """By the time that they take themselves, what takes most first: kernels and copies of a device, else operators,
    or XLA's operations."""

    kinds: Annotated[tuple[TraceOperation, ...], Field(max_length=MAX_KINDS, json_schema_extra=ATOMIC)] = ()
    """All of those by kind, what takes most first: Matrix, Elementwise, Reduction, Copy, Communication or Other, told
    by their names."""

    memory: TraceMemory | None = None
    """Absent where the trace does not say."""

    slowdown: Figure | None = None
    """How many times as long a step took while it was traced. Then shares are of a step at its usual pace."""

    cost: Figure | None = None
    """Seconds by which the trace has held up the program: it was begun and ended, and steps were slower. Absent where
    the profiler does not say."""


@value_object
class TraceSpread(Record):
    """How much of their time the ranks spend in one part."""

    part: str
    """As in the summary."""

    least: Share
    """Of the rank that spends least."""

    least_rank: Count
    """That rank."""

    median: Share
    """Over the ranks that were traced."""

    most: Share
    """Of the rank that spends most."""

    most_rank: Count
    """That rank."""


@value_object
class TraceFailure(Record):
    """A rank, or a pod, without a trace."""

    pod: str
    """Pod of the rank."""

    reason: Annotated[TraceReason, WORD]
    """Why there is no trace of it, in one CamelCase word."""

    message: str
    """The same in a sentence, cut at 200 characters."""

    rank: Count | None = None
    """Absent where nothing is known of the pod's ranks."""


@value_object
class TraceRanks(Record):
    """What became of a trace of all ranks. Its size does not grow with their number."""

    captured: Count
    """How many were traced."""

    failed: Count
    """How many were not. A pod of whose ranks nothing is known counts as one."""

    pods: Count
    """Pods of those that were traced."""

    program: Count | None = None
    """How many ranks the program has, as it says. Absent where it does not."""

    shown: Count | None = None
    """Rank whose summary the trace has: the one that holds up the others, else the lowest."""

    straggler: Count | None = None
    """Rank that the others wait for: it communicates alone for much less of its time than they do. Absent where there
    is none."""

    parts: Annotated[tuple[TraceSpread, ...], Field(max_length=MAX_PARTS, json_schema_extra=ATOMIC)] = ()
    """What the time of the ranks went to."""

    failures: Annotated[tuple[TraceFailure, ...], Field(max_length=MAX_FAILURES, json_schema_extra=ATOMIC)] = ()
    """The first of those that were not traced."""


@value_object
class Trace(Record):
    """The newest trace that was asked for. Written before the sidecars are asked, so that it is asked for once."""

    id: str
    """That the annotation rightpool.dev/trace asks for."""

    state: Annotated[TraceState, WORD]
    """Waiting, Capturing, Captured or Failed."""

    since: UnixTime
    """When the operator took the request."""

    rank: Count | None = None
    """Of the process that is traced. Absent where all ranks are."""

    revision: Size | None = None
    """Revision whose pods are asked."""

    pod: str | None = None
    """Pod of the process; of all ranks, of the one whose summary it is."""

    finished_at: UnixTime | None = None
    """When it was captured, or failed."""

    reason: Annotated[TraceReason | None, WORD] = None
    """Why it failed, in one CamelCase word."""

    message: str = ""
    """The same in a sentence."""

    size_bytes: Total | None = None
    """Of the file, which the sidecar keeps until the next trace or the end of the pod; of all ranks, of all files."""

    sha256: str | None = None
    """Digest of the file, compressed as the sidecar keeps it; of all ranks, of a line `RANK DIGEST` for each."""

    summary: TraceSummary | None = None
    """What it says; of all ranks, of the one that is shown."""

    ranks: TraceRanks | None = None
    """Of a trace of all ranks: how they compare, and which have none."""

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.state.over

    def answers(self, request: TraceRequest) -> bool:
        """Whether it is what is asked for."""
        return (self.id, self.rank) == (request.id, request.rank)
