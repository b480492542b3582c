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

from .checkpoint_files import CheckpointFiles, is_shard
from .steps import StepLog

_FOLLOWERS_WAIT = 0.5  # seconds: rank 0 hears of it first
_WALK_EVERY = 2.0  # seconds; a walk that takes long is done less often
_WALK_SHARE = 0.01  # of the agent's time
_SETTLED = _WALK_EVERY  # seconds after a save of a file that none follows


class Watch:
    """Requests in, newest save out."""

    def __init__(self, shared: str) -> None:
        self._request = os.path.join(shared, "commands", "checkpoint.json")
        self._path = os.environ.get("RIGHTPOOL_CHECKPOINT_PATH") or None
        self._files = CheckpointFiles.from_environment()
        self._born = time.time()
        self._stamp: tuple[int, int] | None = None
        self._answer: dict[str, str] | None = None
        self._walk_at = 0.0
        self._candidate: tuple[float, int] | None = None
        self._saved: float | None = None
        self._took: float | None = None
        self._heard: tuple[float, float] | None = None
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
        """Saves that a framework hook has timed itself. A checkpoint of several files is complete after the last."""
        seen = self._path is not None and os.path.isdir(self._path)
        while observed:
            at, took, path = observed.popleft()
            if seen:
                if self._saved is not None and abs(self._saved - at) < 5.0:
                    self._took = took
            elif path is None or not is_shard(path):
                self._heard = at, took
        if self._heard is not None and not running and time.time() - self._heard[0] >= _SETTLED:
            self._saved, self._took = self._heard
            self._heard = None

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
        newest = self._files.newest(str(self._path))
        if newest is None:
            return
        if newest == self._candidate:  # unchanged for one whole period: complete
            saved = newest[0]
            if self._saved is None or saved > self._saved:
                self._saved = saved
                self._took = log.held_up(saved - self._offset)
        self._candidate = newest


# (Unix time of the end, seconds, file or None) of saves that a framework hook has seen.
observed: collections.deque[tuple[float, float, str | None]] = collections.deque(maxlen=16)
running: set[object] = set()  # saves that have begun and not ended
os.register_at_fork(after_in_child=running.clear)


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
