"""Operators by the dozen: a process that has everything imported and forks one whenever it is told to.

A campaign kills an operator every few seconds, and two thirds of an operator's start are imports. What is forked is a
process of its own, with its own pid, connections and threads, and dies like any other.

Told by lines of JSON on standard input, it answers on standard output:

    {"identity": "a", "log": "…", "environment": {…}, "die": "after:3"}  →  {"identity": "a", "pid": 123}
    (when it ends)                                                      →  {"identity": "a", "pid": 123, "ended": -9}

`die` kills the process by SIGKILL right before or right after its n-th write to the API server: `before:3`, `after:3`.
With `points:<file>` it dies once at every distinct point, before and after it; the file remembers those that were met.
With `record:<file>` it does not die: the file tells what it wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from rightpool.cli import operator as command
from rightpool.cluster.client import JSON_CONTENT, ClusterClient

Body = dict[str, Any]
_FOLLOWED: Final = ("profiledjobs", "jobs", "services")


def point_of(method: str, path: str, query: Mapping[str, str] | None, body: Body | None) -> str | None:
    """What a request does, as a name that is the same for the same step of the same job; None for what changes nothing
    of a Revision: reads, dry runs, Leases, Events, and statuses in which the state machine did not go on."""
    parts = urlsplit(path).path.split("/")
    resource = next((name for name in _FOLLOWED if name in parts), None)
    if method == "GET" or resource is None or (query or {}).get("dryRun"):
        return None
    name = parts[parts.index(resource) + 1] if parts[-1] != resource else str((body or {})["metadata"]["name"])
    if resource != "profiledjobs":
        return f"{method} {resource}/{name}"
    status = (body or {}).get("status") or {}
    migration = status.get("migration") or {}
    placement = status.get("placement") or {}
    history = status.get("history") or ()
    said = [f"r{placement.get('revision')}", str(bool(placement.get("since")))]
    said += [str(migration.get(key)) for key in ("id", "phase", "rollingBack")]
    ended = [c["type"] for c in status.get("conditions") or () if c["type"] in ("Completed", "Failed")]
    return f"status {name} {' '.join(said)} {len(history)} {' '.join(ended)}".rstrip()


class Fate:
    """When a process dies. Thread-safe, since operators write from several threads."""

    def __init__(self, die: str) -> None:
        self._how, _, rest = die.partition(":")
        self._left = int(rest) if self._how in ("before", "after") else 0
        self._memory = Path(rest) if self._how in ("points", "record") else None
        self._lock = threading.Lock()

    def meet(self, when: str, point: str) -> None:
        """Before or after a write. Does not return where the process is to die here."""
        with self._lock:
            if self._memory is not None:
                line = f"{when} {point}"
                known = self._memory.read_text().splitlines() if self._memory.exists() else []
                if line in known and self._how == "points":
                    return
                with self._memory.open("a") as memory:
                    memory.write(line + "\n")
                if self._how == "record":
                    return
            elif when == self._how:
                self._left -= 1
                if self._left > 0:
                    return
            else:
                return
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()


def doom(die: str) -> None:
    """Let this process's writes pass by its fate."""
    fate = Fate(die)
    call = ClusterClient._call

    def fated(
        self: ClusterClient,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        content: str = JSON_CONTENT,
    ) -> Body:
        point = point_of(method, path, query, body)
        if point is not None:
            fate.meet("before", point)
        answer = call(self, method, path, query=query, body=body, content=content)
        if point is not None:
            fate.meet("after", point)
        return answer

    ClusterClient._call = fated  # type: ignore[method-assign]


def operate(order: Body) -> None:
    """The forked process: an operator, until it ends."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)
    os.environ.update({**order["environment"], "RIGHTPOOL_IDENTITY": order["identity"]})
    if order.get("die"):
        doom(order["die"])
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    code = 1
    try:
        code = command.run(parser.parse_args([]))
    finally:
        os._exit(code)


def main() -> None:
    """Fork what is asked for, and tell what ends, until standard input does; then end all."""
    alive: dict[int, str] = {}

    def say(answer: Body) -> None:
        os.write(1, json.dumps(answer).encode() + b"\n")

    for line in _lines(lambda: _reap(alive, say)):
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            operate(order)
        alive[pid] = order["identity"]
        say({"identity": order["identity"], "pid": pid})
    for pid in alive:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)


def _lines(idle: Callable[[], None]) -> Iterator[bytes]:
    """Lines of standard input; `idle` is called whenever there is none. No thread: this process forks."""
    buffer = b""
    while True:
        ready, _, _ = select.select([0], [], [], 0.05)
        idle()
        if not ready:
            continue
        data = os.read(0, 65536)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        yield from lines


def _reap(alive: dict[int, str], say: Callable[[Body], None]) -> None:
    for pid in list(alive):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            say({"identity": alive.pop(pid), "pid": pid, "ended": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main()
