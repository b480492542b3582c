"""Trace files as the user's container can write them, read by the sidecar."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Final

from rightpool import contract
from rightpool_profiler.traces import collector
from tests.fuzz.mutation import broken, damaged, encoded
from tests.fuzz.target import Finding
from tests.unit.profiler.xspaces import field

_OPERATIONS: Final = (
    "fusion.1",
    "all-reduce.2",
    "MemcpyD2H",
    "ncclDevKernel_AllReduce",
    "while.3",
    "end: all-reduce.2",
)
_STATISTICS: Final = ("hlo_op", "hlo_module", "run_id", "device_ordinal", "_p", "_c")
_PARTS: Final = frozenset(contract.PARTS) - {contract.PART_INPUT}


class Traces:
    """The folder of traces, and the collector that reads them."""

    name = "traces"

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="rightpool-fuzz-")
        self._folder = Path(self._home.name)

    def close(self) -> None:
        self._home.cleanup()

    def feed(self, random: Random) -> bool:
        kind, data = ("kineto.json", _kineto(random)) if random.random() < 0.5 else ("xplane.pb", _xspace(random))
        if random.random() < 0.6:
            data = damaged(data, random, random.randrange(1, 4))
        (self._folder / f"{random.randrange(1, 400)}.{kind}").write_bytes(data)
        found = collector.collect(self._folder)
        for _, (shares, _) in found:
            if shares.keys() != _PARTS or not all(-1e-9 <= share <= 1 + 1e-9 for share in shares.values()):
                raise Finding(f"{shares}")
            if not 1 - 1e-6 <= sum(shares.values()) <= 1 + 1e-6:
                raise Finding(f"{shares} sum to {sum(shares.values())}")
        return bool(found)

    def check(self) -> None:
        """Files that were read are deleted, whatever their content."""
        if left := list(self._folder.iterdir()):
            raise Finding(f"{len(left)} files are left")


def _kineto(random: Random) -> bytes:
    events = []
    for _ in range(random.randrange(1, 12)):
        events.append(
            {
                "ph": "X",
                "cat": random.choice(("kernel", "kernel", "gpu_memcpy", "gpu_memset", "cpu_op")),
                "name": random.choice(_OPERATIONS),
                "pid": random.randrange(2),
                "tid": random.randrange(3),
                "ts": random.randrange(10_000) / 10,
                "dur": random.randrange(500) / 10,
            }
        )
    document = broken(events, random, random.choice((0, 1, 2)))
    return b'{"schemaVersion": 1, "traceEvents": ' + encoded(document).replace(b"\n", b"") + b"}"


def _xspace(random: Random) -> bytes:
    """A plane of a device, or of the host with operations on its threads."""
    host = random.random() < 0.5
    names = b"".join(
        field(4, field(1, number) + field(2, field(1, number) + field(2, name.encode())))
        for number, name in enumerate(_OPERATIONS)
    )
    statistics = b"".join(
        field(5, field(1, number) + field(2, field(1, number) + field(2, name.encode())))
        for number, name in enumerate(_STATISTICS)
    )
    lines = b"".join(field(3, _line(random, host)) for _ in range(random.randrange(1, 4)))
    plane = field(2, b"/host:CPU" if host else b"/device:TPU:0") + names + statistics + lines
    return field(1, plane) * random.choice((1, 1, 2))


def _line(random: Random, host: bool) -> bytes:
    name = b"tf_XLAEigen" if host else random.choice((b"XLA Ops", b"XLA Modules", b"Stream #1"))
    line = field(2, name) + field(3, random.choice((0, 1000, 2**63)))
    for _ in range(random.randrange(1, 8)):
        event = field(1, random.randrange(len(_OPERATIONS) + 1)) + field(2, random.randrange(10**6))
        event += field(3, random.choice((0, 10, 1000, 10**5, 2**64 - 1)) if random.random() < 0.1 else 1000)
        for number in range(len(_STATISTICS)):
            if random.random() < 0.6:
                value = random.choice((field(3, random.randrange(4)), field(5, b"jit_step"), field(7, number)))
                event += field(4, field(1, number) + value)
        line += field(4, event)
    return line
