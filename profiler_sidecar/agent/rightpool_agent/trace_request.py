"""A trace that a user has asked for. The sidecar leaves the request as a file; reports say how far it is."""

from __future__ import annotations

import json
import os
import time
from typing import Any

_LASTS = 240.0  # seconds: whoever asked does not wait any longer


class Requests:
    """The newest request for this process, and what became of it.

    States are `waiting`, `capturing`, `written`, and the words of rightpool.contract.TRACE_REASONS.
    """

    def __init__(self, shared: str) -> None:
        self._file = os.path.join(shared, "commands", "trace.json")
        self._stamp: tuple[int, int] | None = None
        self._id = ""
        self._until = 0.0
        self.state = ""
        self.cost: float | None = None  # seconds that the trace has held up the program; None where nobody knows

    @property
    def waits(self) -> bool:
        """Whether a trace is to be begun."""
        return self.state == "waiting"

    def look(self, rank: int) -> None:
        """Read the request if it is new. One for another rank is another process'."""
        try:
            status = os.stat(self._file)
            stamp = (status.st_mtime_ns, status.st_ino)
            # One that comes while a trace is taken is read when that is written.
            if self.state != "capturing" and stamp != self._stamp and status.st_size <= 4096:
                self._stamp = stamp
                with open(self._file) as file:
                    request = json.loads(file.read(4096))
                identity, asked = str(request["id"])[:80], float(request["at"])
                left = asked + _LASTS - time.time()
                if request["rank"] == rank and identity != self._id and 0 < left <= _LASTS + 5.0:
                    self._id, self.state, self.cost = identity, "waiting", None
                    self._until = time.monotonic() + left
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        if self.waits and time.monotonic() > self._until:
            self.state = "NoSteps"

    def facts(self) -> dict[str, Any]:
        """What a report says of it."""
        found: dict[str, Any] = {"trace": {"id": self._id, "state": self.state}} if self._id else {}
        return found if self.cost is None else {**found, "trace_cost": self.cost}
