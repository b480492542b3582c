"""The agent's thread: once a second it reports the counters of this process to the sidecar.

One JSON datagram with cumulative counters, so that a lost one does no harm. The socket never blocks. If the
sidecar is absent the thread tries again a second later.

The thread starts with the first step, so launchers and data loader workers have none. It is a bare thread that the
`threading` module does not list, takes no signal that is meant for the program, and ends before the interpreter does.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from . import process
from .steps import StepLog

PERIOD = 1.0  # seconds
_TRACING = 0.05  # seconds between checks of a running trace
_LAST = -1000  # priority of what is called after all that the program does at its end
_LAST_WORD = 10.0  # seconds the program's exit may wait for the thread: milliseconds, unless it is ending a trace

_logs: dict[str, tuple[StepLog, Callable[[bool], None] | None]] = {}
_threads: dict[int, _Thread] = {}  # by process id: a forked child starts its own


def step_log(framework: str, before: Callable[[bool], None]) -> StepLog:
    """The counters of one framework. `before(final)` is called each second before they are read."""
    log = StepLog()
    _logs[framework] = (log, before)
    os.register_at_fork(after_in_child=log.reset)
    return log


def start() -> None:
    """Start the thread of this process unless it runs. Called at a first step, which may be a forked child's."""
    pid = os.getpid()
    if pid in _threads:
        return
    _threads.clear()
    _threads[pid] = thread = _Thread()
    thread.start()


def shared_dir() -> str:
    """The directory shared with the sidecar, which contains the agent."""
    default = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.environ.get("RIGHTPOOL_SHARED_DIR") or default


class _Thread:
    def __init__(self) -> None:
        self._pid = os.getpid()
        self._stop = _thread.allocate_lock()
        self._ended = _thread.allocate_lock()
        self._stop.acquire()
        self._ended.acquire()
        self._left = False
        self._socket: Any = None

    def start(self) -> None:
        # Signals are blocked while the thread starts, so that it inherits the mask: a program that waits for a signal
        # with sigwait has blocked it in its own threads, and the kernel would deliver it to this one.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            _thread.start_new_thread(self._run, ())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        atexit.register(self._leave)
        children: Any = sys.modules.get("multiprocessing.util")
        if children is not None:  # what it has forked ends without atexit, and calls these
            children.Finalize(None, self._leave, exitpriority=_LAST)

    def _leave(self) -> None:
        """Stop before the interpreter ends: a thread inside a C++ profiler at that time would abort the process."""
        if os.getpid() == self._pid and not self._left:
            self._left = True
            try:
                for name in ("torch_trace", "jax_gpu_trace"):
                    tracer: Any = sys.modules.get(f"{__package__}.{name}")
                    if tracer is not None:
                        tracer.leave()
                self._stop.release()
                self._ended.acquire(timeout=_LAST_WORD)
            except Exception:
                pass

    def _run(self) -> None:
        try:
            from . import checkpoint, chips, compiling, inputs, saves, trace_schedule

            watch = checkpoint.Watch(shared_dir())
            device = chips.Reader()
            traces = trace_schedule.Schedule(shared_dir())
            stopping = False
            framework, active = "", StepLog()
            due = time.monotonic() + PERIOD
            while not stopping:
                stopping = self._stop.acquire(timeout=_TRACING if traces.running else max(0.0, due - time.monotonic()))
                if stopping:
                    traces.abandon()
                elif traces.running and time.monotonic() < due:
                    traces.turn(framework, active)
                    continue
                due = time.monotonic() + PERIOD
                inputs.install()
                message = process.facts()
                framework = ""
                for name, (log, before) in list(_logs.items()):
                    if before is not None:
                        before(stopping)
                    log.drain(stopping)
                    if not framework or log.steps > active.steps:
                        framework, active = name, log
                if not framework:
                    continue
                message.update(_counters(framework, active))
                message.update(watch.look(active, message["rank"]))
                message.update(device.read(message.get("platform")))
                message.update(_model(framework))
                message.update(compiling.facts(active.steps))
                message.update(saves.facts())
                traces.requests.look(message["rank"])
                message.update(traces.requests.facts())
                self._send(message)
                if not stopping:
                    traces.turn(framework, active)
        except Exception:
            pass
        finally:
            self._ended.release()

    def _send(self, message: dict[str, Any]) -> None:
        import json
        import socket

        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            body = json.dumps(message, separators=(",", ":")).encode()
            self._socket.sendto(body, os.path.join(shared_dir(), "profiler.sock"))
        except (OSError, ValueError):
            pass


def _model(framework: str) -> dict[str, Any]:
    hooks: Any = sys.modules.get(f"{__package__}.{framework}_traits")
    found: dict[str, Any] = {} if hooks is None else hooks.facts()
    return found


def _counters(framework: str, log: StepLog) -> dict[str, Any]:
    hooks: Any = sys.modules.get(f"{__package__}.{framework}_steps")
    found: dict[str, Any] = {"framework": framework, "steps": 0, "seconds": 0.0, "counts": [0] * len(log.counts)}
    if not log.opaque:
        found.update(steps=log.steps, seconds=log.seconds, counts=list(log.counts))
        found.update(hooks.details(log))
        return found
    found["opaque"] = True
    if hooks.platform:
        found["platform"] = hooks.platform
    return found
