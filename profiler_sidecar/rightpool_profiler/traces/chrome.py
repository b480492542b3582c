"""Writes XLA's profile in the format of Chrome traces, which Perfetto and chrome://tracing read.

JAX's own `trace.json.gz` would have to be made in the program's process, with its time and memory.
"""

import json
from collections.abc import Callable, Iterable
from gzip import GzipFile
from typing import Final

from rightpool_profiler.traces import xspace
from rightpool_profiler.traces.xspace import Event, Head

_NOISE: Final = "ThreadpoolListener::"  # how a pool of threads hands its work around: half of all events of a CPU
_TEXTS: Final = 20_000  # names that are held as they are written

Each = Callable[[int, str, int, str, Event], None]  # plane, its name, line, its name, event


def write(source: Callable[[], Iterable[bytes]], out: GzipFile, each: Each) -> int:
    """Write the trace, and call `each` with its events. Returns the bytes. Raises ValueError for what is no XSpace.

    source: begins to read the file anew; it is read twice.
    """
    heads = xspace.heads(source())
    size = out.write(b'{"displayTimeUnit": "ms", "traceEvents": [\n' + _named(heads))
    texts: dict[str, str] = {}
    for plane, line, event in xspace.events(source(), heads, _of_use):
        own = heads[plane].plane
        each(plane, own.name, line, own.lines[line].name, event)
        if event.name.startswith(_NOISE):
            continue
        name = texts.get(event.name)
        if name is None:
            name = json.dumps(event.name)
            if len(texts) < _TEXTS:
                texts[event.name] = name
        about = {key: value for key, value in event.stats.items() if key[0] != "_"}
        args = f', "args": {json.dumps(about)}' if about else ""
        size += out.write(
            f',\n{{"ph": "X", "pid": {plane}, "tid": {line}, "ts": {event.start / 1e6:.3f}, '
            f'"dur": {(event.end - event.start) / 1e6:.3f}, "name": {name}{args}}}'.encode()
        )
    return size + out.write(b"\n]}\n")


def _of_use(statistic: str) -> bool:
    """XLA's own notes begin with a line; two of them say which events belong together."""
    return statistic[:1] not in ("_", "") or statistic in xspace.NEEDED


def _named(heads: list[Head]) -> bytes:
    """What the viewers call processes and threads: planes and their lines."""
    found = []
    for pid, head in enumerate(heads):
        if not head.plane.lines:
            continue  # as that of the programs
        found.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": head.plane.name}})
        for tid, line in enumerate(head.plane.lines):
            found.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": line.name}})
    return ",\n".join(json.dumps(one) for one in found).encode()
