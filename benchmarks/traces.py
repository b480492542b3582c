"""What the sidecar needs to read a trace that a user has asked for: memory, and processor time.

    PYTHONPATH=operator:profiler_sidecar python -m benchmarks.traces [MB]

Two traces of that size (by default 500) are made as they are read: one of PyTorch's profiler, a loop over layers of
operators, launches, kernels, their flows and the memory that they take, and one of XLA, of a TPU's operations and the
host's events.
The first one goes the whole way: it is written to a file, copied, compressed, kept and summarised. The second one is
turned into a Chrome trace and summarised; the sidecar would refuse to keep one so large. Each is read in a process of
its own, which has the sidecar's modules loaded. Exit code 1 where the bar is missed.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

BAR: Final = 256.0  # MiB: the sidecar's limit
SIZE: Final = 500  # MB
_LAYERS: Final = 48
_CHUNK: Final = 1 << 18

_Event = dict[str, Any]


def kineto(most: int) -> Iterator[bytes]:
    """So many bytes of a trace of PyTorch's profiler, as it writes them."""
    yield b'{\n  "schemaVersion": 1,\n  "traceEvents": [\n'
    size = 0
    for number in itertools.count():
        text = ",\n".join(json.dumps(event, indent=4) for event in _layer(number)) + ",\n"
        size += len(text)
        yield text.encode()
        if size >= most:
            break
    step = {"ph": "X", "cat": "user_annotation", "name": "Optimizer.step#AdamW.step", "pid": 7, "tid": 7}
    yield json.dumps({**step, "ts": 1e6, "dur": 5.0}).encode() + b"\n]}\n"


def _layer(number: int) -> list[_Event]:
    """What one layer records: a matrix product within a linear map, and what goes with them."""
    at, layer = 4e12 + 100.0 * number, number % _LAYERS
    host, device = {"ph": "X", "pid": 7, "tid": 7}, {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7}
    outer, inner = 2 * number, 2 * number + 1
    shapes = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
    gemm = f"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_NTN_layer{layer}"
    nccl = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    mm = {"External id": inner, **shapes}
    kernel = {"device": 0, "context": 1, "stream": 7, "registers per thread": 168, "grid": [2, 66, 1]}
    flow = {"id": number, "cat": "ac2g", "name": "ac2g"}
    memory = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7}
    most = {"Total Reserved": 70 << 30, "Device Id": 0, "Device Type": 1, "Addr": 140_000_000_000_000 + number}
    result = 1 << 25
    freed = range(layer * result, -1, -result) if layer == _LAYERS - 1 else ()
    return [
        {**host, "cat": "cpu_op", "name": "aten::linear", "ts": at, "dur": 60.5, "args": {"External id": outer}},
        {**host, "cat": "cpu_op", "name": "aten::mm", "ts": at + 9, "dur": 40, "args": mm},
        {**memory, "ts": at + 12, "args": {**most, "Bytes": result, "Total Allocated": (layer + 1) * result}},
        {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "ts": at + 20, "dur": 8, "args": {"cbid": 430}},
        {"ph": "s", "pid": 7, "tid": 7, "ts": at + 20, **flow},
        {"ph": "f", "pid": 0, "tid": 7, "ts": at + 30, "bp": "e", **flow},
        {**device, "name": gemm, "ts": at + 30, "dur": 65.25, "args": {**kernel, "External id": inner}},
        {**device, "name": nccl, "tid": 20, "ts": at + 80, "dur": 30, "args": kernel},
        *({**memory, "ts": at + 90, "args": {**most, "Bytes": -result, "Total Allocated": left}} for left in freed),
    ]  # fmt: skip


def xspace(most: int) -> Iterator[bytes]:
    """So many bytes of a trace of XLA: half of them a TPU's operations, half the host's."""
    operations = [f"%fusion.{number} = bf16[4096,4096] fusion(...)" for number in range(40 * _LAYERS)]
    numbers = b"".join(_field(4, _field(1, 1) + _field(3, 1 << 46)) for _ in range(4))
    yield from _plane("/device:TPU:0", "XLA Ops", operations, most // 2, numbers)
    note = _field(4, _field(1, 1) + _field(5, b"a note of the host " * 2))
    yield from _plane("/host:CPU", "python", ["PjitFunction(step)"], most // 2, note)


def _plane(name: str, line: str, names: list[str], most: int, about: bytes) -> Iterator[bytes]:
    """about: the statistics of each event, as many bytes as in recorded traces, which have 53 to 62 for an event. The
    size of a message stands before it, so that its events are made twice."""

    def events() -> Iterator[bytes]:
        size = 0
        for number in itertools.count():
            event = _field(1, number % len(names) + 1) + _field(2, 1_200_000 * number) + _field(3, 1_000_000)
            content = _field(4, event + about)
            size += len(content)
            yield content
            if size >= most:
                return

    head = _field(2, line.encode()) + _field(3, 0)
    length = len(head) + sum(map(len, events()))
    table = b"".join(
        _field(4, _field(1, number) + _field(2, _field(1, number) + _field(2, text.encode())))
        for number, text in enumerate(names, 1)
    ) + _field(5, _field(1, 1) + _field(2, _field(1, 1) + _field(2, b"note")))
    start = _field(2, name.encode()) + _varint(3 << 3 | 2) + _varint(length) + head
    yield _varint(1 << 3 | 2) + _varint(len(start) + length - len(head) + len(table)) + start
    yield from events()
    yield table


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in chunks as long as those of a file that is read."""
    held = io.BytesIO()
    for piece in pieces:
        held.write(piece)
        if held.tell() >= _CHUNK:
            yield held.getvalue()
            held = io.BytesIO()
    yield held.getvalue()


def read_kineto(source: Path) -> _Event:
    """The whole way of a file."""
    from rightpool_profiler.traces.kept import MAX_KEPT_BYTES, Kept

    with tempfile.TemporaryDirectory(prefix="rightpool-") as folder:
        found: _Event = Kept(Path(folder)).keep(source, Path(folder, "kept.json.gz"), MAX_KEPT_BYTES)["summary"]
    return found


def read_xspace(source: Path) -> _Event:
    """The analysis of a file."""
    from rightpool_profiler.traces.chrome import write
    from rightpool_profiler.traces.xla_summary import Reading

    def chunks() -> Iterator[bytes]:
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    reading = Reading()
    with gzip.GzipFile(os.devnull, "wb", 6) as packed:
        write(chunks, packed, reading.add)
    return reading.summary().to_dict()


KINDS: Final[dict[str, tuple[Callable[[int], Iterator[bytes]], Callable[[Path], _Event], str]]] = {
    "PyTorch": (kineto, read_kineto, "1.requested.json"),
    "XLA": (xspace, read_xspace, "1.requested.xplane.pb"),
}


def read_alone(kind: str, source: str) -> None:
    """In a process of its own: print what it needed."""
    import rightpool_profiler.sidecar  # noqa: F401

    began = time.process_time()
    found = KINDS[kind][1](Path(source))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.process_time() - began
    print(json.dumps({"memory": most, "seconds": seconds, "operations": sum(one["count"] for one in found["kinds"])}))


def main() -> int:
    """Print the table."""
    if len(sys.argv) == 3:
        read_alone(*sys.argv[1:])
        return 0
    size = int(sys.argv[1] if len(sys.argv) > 1 else SIZE) * 10**6
    missed = False
    print(f"{'trace of':10} {'MB':>8} {'operations':>12} {'processor s':>12} {'MiB':>8}   at most {BAR:g} MiB")
    for kind, (made, _, name) in KINDS.items():
        with tempfile.TemporaryDirectory(prefix="rightpool-") as folder:
            path = Path(folder, name)
            with path.open("wb") as file:
                for chunk in gathered(made(size)):
                    file.write(chunk)
            command = [sys.executable, "-m", "benchmarks.traces", kind, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            late = found["memory"] > BAR
            missed = missed or late
            print(
                f"{kind:10} {path.stat().st_size / 1e6:8.0f} {found['operations']:12,} {found['seconds']:12.0f} "
                f"{found['memory']:8.0f}{'   missed' if late else ''}",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
