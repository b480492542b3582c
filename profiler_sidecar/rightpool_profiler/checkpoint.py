"""Requests for a checkpoint, from the operator's POST to the proof that one was written.

The agent gets the request as a file; its reports return its response and the newest save. A POST with the same id is
the same request, so that repeating it returns the current state.
"""

import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from rightpool_profiler.command import leave
from rightpool_profiler.state import State

FILE: Final = "checkpoint.json"
MAX_ID: Final = 64


class Mode(StrEnum):
    """How the program is asked for a checkpoint."""

    SIGNAL = "Signal"
    PERIODIC = "Periodic"
    NONE = "None"


class Conflict(Exception):
    """The request is not possible now. The message is for the caller."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `at` is Unix time."""

    id: str
    """As the operator names it: repeats under it are one request."""
    at: float
    """When it came."""


class Checkpoints:
    """Holds the latest request."""

    def __init__(self, mode: Mode, signal: str, directory: Path) -> None:
        self._mode = mode
        self._signal = signal
        self._file = directory / FILE
        self._request: Request | None = None

    def ask(self, identity: str, state: State, now: float, unix: float) -> str:
        """Request a checkpoint and return the state of the request. Raises Conflict if it is not possible."""
        if self._mode is Mode.NONE:
            raise Conflict("this job does not checkpoint")
        if self._request is None or self._request.id != identity:
            if not state.stepping(now):
                raise Conflict("no training process has been seen")
            if self._mode is Mode.SIGNAL:
                self._leave(identity, unix)
            self._request = Request(identity, unix)
        return self.state(state, now)

    def state(self, state: State, now: float) -> str:
        """The state: saved, signalled, waiting, or why the program was not asked."""
        if self._request is None:
            return "none"
        if state.saved is not None and state.saved >= self._request.at:
            return "saved"
        if self._mode is Mode.PERIODIC:
            return "waiting"
        return state.command(self._request.id, now) or "requested"

    def describe(self, state: State, now: float) -> dict[str, object]:
        """The entry in /profile."""
        found: dict[str, object] = {"mode": self._mode.value, "savedAt": state.saved}
        if self._request is not None:
            found |= {"id": self._request.id, "requestedAt": self._request.at, "state": self.state(state, now)}
        return found

    def _leave(self, identity: str, unix: float) -> None:
        try:
            leave(self._file, {"id": identity, "signal": self._signal, "at": unix})
        except OSError as error:
            raise Conflict(f"cannot reach the program: {error.strerror}") from error


def clocks() -> tuple[float, float]:
    """The current time, (monotonic, Unix)."""
    return time.monotonic(), time.time()
