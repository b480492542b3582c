"""A process that has imported the operator and forks one on request.

A campaign kills an operator every few seconds, and two thirds of an operator's start are imports. A forked operator is
a separate process with its own pid, connections and threads.

Requests are lines of JSON on standard input, answers on standard output:

    {"identity": "a", "log": "…", "variables": {…}, "crash": "after:3"}  →  {"identity": "a", "pid": 123}
    (when it ends)                                                      →  {"identity": "a", "pid": 123, "ended": -9}

`crash` kills the process by SIGKILL right before or after its n-th write to the API server: `before:3`, `after:3`.
With `points:<file>` it crashes once before and once after every distinct write; the file lists those already reached.
With `record:<file>` it does not crash, and the file lists all writes.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from rightpool.cli import operator as command
from rightpool.cluster.client import Hook, Request, Send

Body = dict[str, Any]
_FOLLOWED: Final = ("profiledjobs", "jobs", "jobsets", "trainjobs", "leaderworkersets", "services")


def point_of(request: Request) -> str | None:
    """A name for a write, the same for the same step of the same job.

    None for requests that change nothing of a Revision: reads, dry runs, Leases and Events.
    """
    parts = request.path.split("/")
    resource = next((name for name in _FOLLOWED if name in parts), None)
    if request.method == "GET" or resource is None or request.query.get("dryRun"):
        return None
    body = request.body if isinstance(request.body, dict) else {}
    name = parts[parts.index(resource) + 1] if parts[-1] != resource else str(body["metadata"]["name"])
    if isinstance(request.body, list):
        set_to = {one["path"]: one.get("value") for one in request.body}
        groups, stops = set_to.get("/spec/replicas"), set_to.get("/spec/suspend")
        if groups is not None:
            stops = groups == 0
        return f"{request.method} {resource}/{name} {'notes' if stops is None else 'suspend' if stops else 'resume'}"
    if resource != "profiledjobs" or parts[-1] != "status":
        guards = (body.get("metadata") or {}).get("finalizers")
        return f"{request.method} {resource}/{name}" + ("" if guards is None else " guard" if guards else " free")
    status = body.get("status") or {}
    migration = status.get("migration") or {}
    placement = status.get("placement") or {}
    history = status.get("history") or ()
    words = [f"r{placement.get('revision')}", str(bool(placement.get("since")))]
    words += [str(migration.get(key)) for key in ("id", "phase", "rollingBack")]
    ended = [c["type"] for c in status.get("conditions") or () if c["type"] in ("Completed", "Failed")]
    ended += ["trial"] if status.get("trial") else []
    ended += ["remade"] if (status.get("adopted") or {}).get("remade") else []
    return f"status {name} {' '.join(words)} {len(history)} {' '.join(ended)}".rstrip()


class CrashPoint:
    """At which write a process crashes. Thread-safe, since operators write from several threads."""

    def __init__(self, crash: str) -> None:
        self._how, _, rest = crash.partition(":")
        self._left = int(rest) if self._how in ("before", "after") else 0
        self._memory = Path(rest) if self._how in ("points", "record") else None
        self._lock = threading.Lock()

    def reach(self, when: str, point: str) -> None:
        """Called before or after each write. Does not return if the process crashes here."""
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


def crashing(crash: str) -> Hook:
    """Crash this process at one of its writes to the API server."""
    crash_point = CrashPoint(crash)

    def send_or_crash(request: Request, send: Send) -> Body:
        point = point_of(request)
        if point is not None:
            crash_point.reach("before", point)
        answer = send(request)
        if point is not None:
            crash_point.reach("after", point)
        return answer

    return send_or_crash


def operate(order: Body) -> None:
    """Run an operator in the forked process."""
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)
    os.environ.update({**order["variables"], "RIGHTPOOL_IDENTITY": order["identity"]})
    hook = crashing(order["crash"]) if order.get("crash") else None
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    code = 1
    try:
        code = command.run(parser.parse_args([]), hook)
    finally:
        os._exit(code)


def main() -> None:
    """Fork operators and report their ends until standard input is closed; then kill all."""
    alive: dict[int, str] = {}

    def reply(answer: Body) -> None:
        os.write(1, json.dumps(answer).encode() + b"\n")

    for line in _lines(lambda: _reap(alive, reply)):
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            operate(order)
        alive[pid] = order["identity"]
        reply({"identity": order["identity"], "pid": pid})
    for pid in alive:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGKILL)


def _lines(idle: Callable[[], None]) -> Iterator[bytes]:
    """Lines of standard input; `idle` is called in between. Without a thread, because this process forks."""
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


def _reap(alive: dict[int, str], reply: Callable[[Body], None]) -> None:
    for pid in list(alive):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            reply({"identity": alive.pop(pid), "pid": pid, "ended": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main()
