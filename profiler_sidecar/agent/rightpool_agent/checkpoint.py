"""Asks the program for a checkpoint, and notices when one has been written.

The sidecar leaves a request as a file. The agent raises the signal only if the program handles it: the default action
of SIGUSR1 is to end the process. The proof of a save is a file that has stopped growing, because that holds for every
framework and every way of saving.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import time
from typing import Any

from .steps import StepLog

_FOLLOWERS_WAIT = 0.5  # seconds: rank 0 hears of it first
_MAX_ENTRIES = 2000  # directory entries looked at per walk
_MAX_DEPTH = 3
_TEMPORARY = (".tmp", ".temp", ".part", ".partial", ".incomplete", ".lock", ".swp")
_WALK_EVERY = 2.0  # seconds; a walk that takes long is done less often
_WALK_SHARE = 0.01  # of the agent's time


class Watch:
    """Requests in, newest save out."""

    def __init__(self, shared: str) -> None:
        self._request = os.path.join(shared, "commands", "checkpoint.json")
        self._path = os.environ.get("RIGHTPOOL_CHECKPOINT_PATH") or None
        self._born = time.time()
        self._stamp: tuple[int, int] | None = None
        self._answer: dict[str, str] | None = None
        self._walk_at = 0.0
        self._candidate: tuple[float, int] | None = None
        self._saved: float | None = None
        self._took: float | None = None
        self._offset = time.time() - time.perf_counter()

    def look(self, log: StepLog, rank: int) -> dict[str, Any]:
        """Serve a new request, and say what is known: `command`, `saved` (Unix time), `save_seconds`."""
        self._serve(rank)
        if self._path is not None and time.monotonic() >= self._walk_at:
            began = time.monotonic()
            self._walk(log)
            took = time.monotonic() - began
            self._walk_at = began + max(_WALK_EVERY, took / _WALK_SHARE)
        found: dict[str, Any] = {}
        if self._answer is not None:
            found["command"] = self._answer
        self._noted()
        if self._saved is not None:
            found["saved"] = self._saved
            if self._took is not None:
                found["save_seconds"] = self._took
        return found

    def _noted(self) -> None:
        """Saves that a framework hook has timed itself."""
        while observed:
            at, took = observed.popleft()
            if self._path is None or not os.path.isdir(self._path):
                self._saved, self._took = at, took
            elif self._saved is not None and abs(self._saved - at) < 5.0:
                self._took = took

    def _serve(self, rank: int) -> None:
        try:
            status = os.stat(self._request)
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp == self._stamp or status.st_size > 4096:
                return
            self._stamp = stamp
            with open(self._request) as file:
                request = json.loads(file.read(4096))
            name, identity, asked = str(request["signal"]), str(request["id"])[:128], float(request["at"])
            if asked < self._born:
                return  # meant for a process that was here before
            number = getattr(signal, name)
            if not isinstance(number, signal.Signals):
                return
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return
        state = _disposition(number)
        if state == "handled":
            if rank > 0:
                time.sleep(_FOLLOWERS_WAIT)
            os.kill(os.getpid(), number)
            self._answer = {"id": identity, "state": "signalled"}
        else:
            self._answer = {"id": identity, "state": f"{state} {name}"}

    def _walk(self, log: StepLog) -> None:
        newest = _newest(str(self._path))
        if newest is None:
            return
        if newest == self._candidate:  # unchanged for one whole period: complete
            saved = newest[0]
            if self._saved is None or saved > self._saved:
                self._saved = saved
                self._took = log.held_up(saved - self._offset)
        self._candidate = newest


# (Unix time of the end, seconds) of saves that a framework hook has seen.
observed: collections.deque[tuple[float, float]] = collections.deque(maxlen=16)


def _disposition(number: signal.Signals) -> str:
    """What this process would do with the signal, from the kernel: handlers may be Python's or C's."""
    try:
        with open("/proc/self/status") as file:
            masks = dict(line.split(":", 1) for line in file if line.startswith(("SigCgt", "SigIgn")))
        bit = 1 << (number - 1)
        if int(masks["SigCgt"], 16) & bit:
            return "handled"
        if int(masks["SigIgn"], 16) & bit:
            return "the program ignores"
    except (OSError, ValueError, KeyError):
        pass
    return "no handler installed for"


def _newest(root: str) -> tuple[float, int] | None:
    """(modification time, size) of the newest finished file under `root`, a bounded walk."""
    best: tuple[float, int] | None = None
    left = _MAX_ENTRIES
    queue = collections.deque([(root, 0)])
    while queue and left > 0:
        directory, depth = queue.popleft()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    left -= 1
                    if left <= 0:
                        break
                    name = entry.name.lower()
                    if (
                        name.startswith(".")
                        or name.endswith(_TEMPORARY)
                        or ".tmp" in name
                        or "orbax-checkpoint-tmp" in name
                    ):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _MAX_DEPTH:
                            queue.append((entry.path, depth + 1))
                        continue
                    status = entry.stat(follow_symlinks=False)
                    found = (status.st_mtime, status.st_size)
                    if status.st_size > 0 and (best is None or found > best):
                        best = found
        except OSError:
            continue
    if best is None and os.path.isfile(root):
        status = os.stat(root)
        best = (status.st_mtime, status.st_size)
    return best
