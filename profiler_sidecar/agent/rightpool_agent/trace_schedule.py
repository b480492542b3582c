"""Decides when a short trace of some steps is worth taking: after warm-up, then every few minutes.

A trace is bounded by steps and by time, and its result is left as a file for the sidecar, which does the arithmetic
with its own CPU time.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from .steps import StepLog

_WARM_UP_STEPS = 10
_WARM_UP_SECONDS = 5.0  # of stepping
_EVERY = 120.0  # seconds between traces
_STEPS = 5
_SHORTEST = 0.2  # seconds: fast steps are averaged over more of them
_LONGEST = 20.0
_MAX_BYTES = 16 << 20


class Schedule:
    """One trace at a time, driven from the agent's thread."""

    def __init__(self, shared: str) -> None:
        self._directory = os.path.join(shared, "traces")
        self._wanted = os.environ.get("RIGHTPOOL_TRACE", "Off") == "Auto"
        self._first: float | None = None
        self._next = 0.0
        self._session: Any = None
        self._began = 0.0
        self._steps_before = 0

    @property
    def running(self) -> bool:
        return self._session is not None

    def turn(self, framework: str, log: StepLog) -> None:
        """Begin a trace if one is due, end the running one if it has seen enough."""
        if not self._wanted or framework != "jax":
            return
        now = time.monotonic()
        tracer: Any = sys.modules.get(__package__ + ".jax_trace")
        if tracer is None:
            return
        if self._session is not None:
            elapsed = now - self._began
            if elapsed > _LONGEST or (log.seen - self._steps_before >= _STEPS and elapsed > _SHORTEST):
                body = tracer.finish(self._session)
                self._session = None
                self._leave(body)
            return
        if self._first is None:
            self._first = now
        if now < self._next or now - self._first < _WARM_UP_SECONDS or log.steps < _WARM_UP_STEPS:
            return
        self._next = now + _EVERY
        if os.path.isdir(self._directory):
            self._began, self._steps_before = now, log.seen
            self._session = tracer.begin()

    def abandon(self) -> None:
        """The program ends: stop without a result."""
        tracer: Any = sys.modules.get(__package__ + ".jax_trace")
        if self._session is not None and tracer is not None:
            tracer.finish(self._session)
            self._session = None

    def _leave(self, body: bytes | None) -> None:
        if not body or len(body) > _MAX_BYTES:
            return
        name = os.path.join(self._directory, f"{os.getpid()}.xplane.pb")
        try:
            with open(name + ".tmp", "wb") as file:
                file.write(body)
            os.replace(name + ".tmp", name)
        except OSError:
            try:
                os.unlink(name + ".tmp")
            except OSError:
                pass
