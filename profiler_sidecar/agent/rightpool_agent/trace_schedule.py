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
_LONGEST = 20.0


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
        self._tracer: Any = None

    @property
    def running(self) -> bool:
        return self._session is not None

    def turn(self, framework: str, log: StepLog) -> None:
        """Begin a trace if one is due, end the running one if it has seen enough."""
        tracer: Any = sys.modules.get(f"{__package__}.{framework}_trace")
        if not self._wanted or tracer is None:
            return
        now = time.monotonic()
        if self._session is not None:
            elapsed = now - self._began
            if elapsed > _LONGEST or tracer.ready(self._session, log.seen - self._steps_before, elapsed):
                session, self._session = self._session, None
                self._finish(tracer, session)
            return
        if self._first is None:
            self._first = now
        if now < self._next or now - self._first < _WARM_UP_SECONDS or log.steps < _WARM_UP_STEPS:
            return
        self._next = now + _EVERY
        if os.path.isdir(self._directory):
            self._began, self._steps_before = now, log.seen
            self._session = tracer.begin()
            self._tracer = tracer

    def abandon(self) -> None:
        """The program ends: stop without a result."""
        if self._session is not None:
            session, self._session = self._session, None
            self._tracer.abandon(session)

    def _finish(self, tracer: Any, session: Any) -> None:
        """Leave the finished trace for the sidecar, under its name only once it is whole."""
        path = os.path.join(self._directory, str(os.getpid()) + tracer.ENDING)
        try:
            if tracer.finish(session, path + ".tmp"):
                os.replace(path + ".tmp", path)
        except Exception:  # a full disk, say: the trace is lost, and nothing else
            try:
                os.unlink(path + ".tmp")
            except OSError:
                pass
