"""Schedules short traces of some steps: after warm-up, then every few minutes, and when a user asks for one.

A trace is bounded by steps and by time, and its result is left as a file for the sidecar, which does the arithmetic
with its own CPU time.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from typing import Any

from .steps import StepLog
from .trace_request import Requests

_WARM_UP_STEPS = 10
_WARM_UP_SECONDS = 5.0  # of stepping
_EVERY = 120.0  # seconds between traces
_LONGEST = 20.0
_REQUESTED_LONGEST = 90.0
_LONGEST_STEP = 20.0  # seconds: what the profiler records of a longer one may not fit into the program's memory
_UNCOUNTED = 5.0  # seconds of a program whose steps nobody can count


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
        self._requested = False
        self._usual: float | None = None
        self.requests = Requests(shared)

    @property
    def running(self) -> bool:
        return self._session is not None

    def turn(self, framework: str, log: StepLog) -> None:
        """Start a trace if its time has come, or stop the running one if it is complete."""
        now = time.monotonic()
        if self._session is not None:
            elapsed, longest = now - self._began, _REQUESTED_LONGEST if self._requested else _LONGEST
            if elapsed > longest or self._tracer.ready(self._session, self._made(log, elapsed), elapsed):
                session, self._session = self._session, None
                self._finish(session)
            return
        if self.requests.waits:
            self._begin_requested(framework, log, now)
            return
        tracer: Any = sys.modules.get(f"{__package__}.{framework}_trace")
        if not self._wanted or tracer is None:
            return
        if self._first is None:
            self._first = now
        if now < self._next or now - self._first < _WARM_UP_SECONDS or log.steps < _WARM_UP_STEPS:
            return
        self._next = now + _EVERY
        if os.path.isdir(self._directory):
            self._began, self._steps_before = now, log.seen
            try:
                self._session = tracer.begin()
            except Exception:
                self._wanted = False  # this version has something elsewhere; all else of the agent goes on
            self._tracer, self._requested = tracer, False

    def _begin_requested(self, framework: str, log: StepLog, now: float) -> None:
        """Begin the trace that was asked for, as soon as the program makes steps; else say why it can't be had."""
        tracer: Any = sys.modules.get(f"{__package__}.{framework}_trace")
        if tracer is None:
            self.requests.state = "UnsupportedFramework"
            return
        usual = log.median()
        if usual is None and not log.opaque:
            return  # no two steps so far
        if usual is not None and usual > _LONGEST_STEP:
            self.requests.state = "StepTooLong"
            return
        try:
            session = tracer.begin_requested()
        except Exception:
            session = "UnsupportedVersion"  # it has something elsewhere
        if isinstance(session, str):
            self.requests.state = session
            return
        self.requests.state = "capturing"
        self._usual = usual
        self._began, self._session, self._tracer, self._requested = now, session, tracer, True
        self._steps_before = log.steps

    def _made(self, log: StepLog, elapsed: float) -> int:
        """Steps since the trace was begun. A function may be called long before it is executed, so that what a user
        has asked for goes by the time that steps take on average, too."""
        if not self._requested:
            return log.seen - self._steps_before
        if log.opaque:
            return int(elapsed / _UNCOUNTED)
        log.drain()
        usual = log.mean()
        made = log.steps - self._steps_before
        return made if not usual else min(made, int(elapsed / usual))

    def abandon(self) -> None:
        """Stop without a result, because the program ends."""
        if self._session is not None:
            session, self._session = self._session, None
            self._tracer.abandon(session)

    def _finish(self, session: Any) -> None:
        """Write the trace for the sidecar, and rename it when it is complete."""
        tracer, requested = self._tracer, self._requested
        ending = tracer.REQUESTED if requested else tracer.ENDING
        made = 0 if requested else getattr(session, "made", 0)  # the file does not say of how many steps it is
        path = os.path.join(self._directory, f"{os.getpid()}.{made}{ending}" if made else f"{os.getpid()}{ending}")
        state = "CaptureFailed"
        try:
            if tracer.finish(session, path + ".tmp"):
                os.replace(path + ".tmp", path)
                state = "written"
            elif requested:
                state = session.reason
        except Exception as error:  # such as a full disk; only the trace is lost
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                state = "NoSpace"
            try:
                os.unlink(path + ".tmp")
            except OSError:
                pass
        if requested:
            self.requests.cost = self._cost(session) if state == "written" else None
            self.requests.state = state

    def _cost(self, session: Any) -> float | None:
        """Seconds by which the program was held up: its thread began the trace, made slower steps and ended it."""
        took, made = getattr(session, "took", 0.0), getattr(session, "made", 0)
        return max(0.0, took - made * self._usual) if took and made and self._usual is not None else None
