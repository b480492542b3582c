"""A trace of a JAX program on NVIDIA GPUs, begun and ended by the program's own thread, between two calls of its step.

XLA takes CUPTI down when a session ends. Where kernels still run then, CUDA ends the program by a launch failure or an
illegal address: so it was in 7 of 8 programs that a thread beside them traced (tests/gpu/check_jax_trace_threads.py).
So the thread that calls the step waits for all arrays before it begins or ends a session, and a program that computes
from several threads, or with PyTorch on the same chips, is not traced. Nor is one that nobody has asked to.

Nothing can end a session within a call. A first one of a single call says how many fit into the one that counts, and
CUPTI's own limit bounds what a call may record.
"""

from __future__ import annotations

import _thread
import sys
import time
from typing import Any

from . import jax_trace, process

_WATCH = 2.0  # seconds in which no other thread must compute
_CALLS = 3  # of the step in them, at least
_LONGEST = 10.0  # seconds after which a trace ends with the call
_MAX_EVENTS = 500_000  # of CUPTI in a session: more are dropped, with a line on the program's stderr
_WAY = 5.0  # seconds that the program's own profiler waits for the end of ours

wanted: Session | None = None


class Session(jax_trace.Session):
    """One trace: wanted by the agent's thread, taken by the program's."""

    by_program = True

    def __init__(self) -> None:
        super().__init__(requested=True)
        self.reason = "NoSteps"
        self.thread = 0  # which calls the step
        self.watched = 0.0
        self.seen = 0
        self.others = False  # another thread computes
        self.calls = 0
        self.most_calls = 1.0
        self.body: bytes | None = None
        self.given_up = False  # by the agent's thread, which waits no longer
        self.ended = False  # last of all: from then on the agent's thread takes the result

    def configure(self, options: Any) -> None:
        """What the host does is not recorded for each operation of a GPU: it would have no bound."""
        options.host_tracer_level = 1
        options.advanced_configuration = {
            "gpu_max_activity_api_events": _MAX_EVENTS,
            "gpu_max_callback_api_events": _MAX_EVENTS,
        }

    def called(self, track: Any) -> None:
        """A compiled function was called. track: whose step that is; None for JAX's own operations."""
        if self.ended:
            return
        thread = _thread.get_ident()
        dominant = _dominant()
        step = track is not None and (track is dominant or track.joins is dominant)
        if not self.thread and step:
            self.thread, self.watched = thread, time.monotonic()
        if self.thread and thread != self.thread:
            self.others = True
            return
        if not step:
            return
        if self.others:
            self._close("JaxOnGPU")
        elif self.profiler is None:
            self.seen += 1
            if time.monotonic() - self.watched >= _WATCH and self.seen >= _CALLS:
                self._begin()
        else:
            self.calls += 1
            self._go_on(dominant.each if track is dominant else 0)

    def give_up(self) -> None:
        """A session that is open ends with the next call."""
        self.given_up = True
        if self.profiler is None:
            self._end("NoSteps")

    def take(self) -> bytes | None:
        if self.ended:
            return self.body
        self.give_up()
        return None

    def make_way(self) -> None:
        """Before the program's own trace ends the session; another thread lets the one that began it do so."""
        self.reason = "ProgramProfiles"
        if self.thread != _thread.get_ident():
            self.given_up = True
            deadline = time.monotonic() + _WAY
            while jax_trace.session_of_process() is self and time.monotonic() < deadline:
                time.sleep(0.01)
        _drain()

    def leave(self) -> None:
        """The interpreter goes: no session must outlive it."""
        if self.thread == _thread.get_ident() and self.profiler is not None and not self.ended:
            self._close("NoSteps")

    def _begin(self) -> None:
        _drain()
        reason = jax_trace.open_session(self)
        if reason or self.given_up:  # the agent's thread has not seen that it was begun
            self._close(reason or self.reason)

    def _go_on(self, each: int) -> None:
        took = time.monotonic() - self.began
        self.steps += each
        if self.given_up:
            self._close(self.reason)
        elif self.looking:
            self._look_longer()
        elif (
            ((self.steps or self.calls) >= jax_trace.STEPS and took > jax_trace.SHORTEST)
            or self.calls >= self.most_calls
            or took > _LONGEST
            or process.resident() > self.most_memory
        ):
            _drain()
            jax_trace.mark(calls=self.calls)
            self.body = jax_trace.end_session(self)
            self._close(self.reason if self.body is None else "")

    def _look_longer(self) -> None:
        _drain()
        body = jax_trace.end_session(self)
        if body is None:
            self._close(self.reason)
        elif len(body) > jax_trace.REQUESTED_BYTES:
            self._close("TooLarge")
        else:
            self.most_calls = jax_trace.REQUESTED_BYTES // len(body)
            self.most_memory = process.most_resident() + jax_trace.GROWTH
            self.looking, self.calls, self.steps = False, 0, 0
            self._begin()

    def _close(self, reason: str) -> None:
        """Nothing more is recorded."""
        if jax_trace.session_of_process() is self:
            _drain()
            jax_trace.end_session(self)
        self._end(reason)

    def _end(self, reason: str) -> None:
        self.reason = reason
        self.ended = True
        if wanted is self:
            _want(None)


def begin_requested() -> Session | str:
    """Ask for a trace of the next steps, or say in a word why there can be none."""
    torch = sys.modules.get("torch.cuda")
    if torch is not None and torch.is_initialized():
        return "JaxOnGPU"
    if wanted is not None:
        return "NoSteps"  # an earlier one waits for a call to end with
    made = Session()
    _want(made)
    return made


def forget() -> None:
    """In a forked child: the parent's session is not its own."""
    _want(None)


def leave() -> None:
    """Called by the program's main thread before the interpreter goes."""
    current = wanted
    if current is not None:
        current.leave()


def _want(current: Session | None) -> None:
    global wanted
    wanted = current
    hooks: Any = sys.modules.get(__package__ + ".jax_steps")
    if hooks is not None:
        hooks.between = None if current is None else current.called


def _dominant() -> Any:
    hooks: Any = sys.modules.get(__package__ + ".jax_steps")
    return None if hooks is None or hooks._log is None else hooks._log.dominant


def _drain() -> None:
    """Wait for all that the program has begun to compute or to copy. What fails, the program will be told itself."""
    for array in sys.modules["jax"].live_arrays():
        try:
            array.block_until_ready()
        except Exception:
            pass
