"""Sees the steps of a JAX program without touching its functions.

`jax.jit` calls a "post hook" after each execution of an already compiled function: the place where JAX itself checks
for NaNs. It sees `@jit`, `jit(f, donate_argnums=…)`, `pmap` and ahead-of-time compiled calls, is passed over while a
function is traced, and costs 0.2 µs. A compilation never comes by, so compile steps are left out by themselves.

Functions with side effects (`jax.debug.print`, callbacks) never take that path. Those run through `_run_python_pjit`,
which is wrapped for them.

Dispatch is asynchronous: a call returns before the device has finished. The interval between two returns is still
right on average, because the queue is short and the program waits for it.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from . import batch, reporter
from .steps import StepLog, Track

_MAX_FUNCTIONS = 4096
_COMPILED = "/jax/core/compile/backend_compile_duration"

# id(function) → (track, where its batch is). `None` marks functions that are no step: JAX's own operations.
_known: dict[int, tuple[Track, batch.Rows] | None] = {}
_log: StepLog | None = None
platform: str | None = None  # where the dominant work runs: cpu, gpu, tpu


def install() -> None:
    """Called once, right after the program has imported jax."""
    global _log
    _log = reporter.step_log("jax", rearm=rearm)
    rearm()
    _watch_effects()
    _watch_compilations()
    from . import jax_trace

    jax_trace.install()


def rearm() -> None:
    """Set the hook, in front of JAX's own when the program checks for NaNs. Turning that on or off resets it."""
    state = sys.modules["jax._src.api"]._post_hook_state
    current = state.get_global()
    if getattr(current, "_rightpool", False):
        return
    state.set_global(_hook(current))


def _hook(following: Callable[..., Any] | None) -> Callable[..., Any]:
    known = _known
    assert _log is not None
    append = _log.append
    clock = time.perf_counter

    def after_call(function: Any, args: Any, kwargs: Any, output: Any) -> None:
        try:
            now = clock()
            entry = known.get(id(function), 0)
            if entry == 0:
                entry = _meet(function, function, args, kwargs, output)
            if entry is not None:
                append((entry[0], now, entry[1](args, kwargs)))  # type: ignore[index]
        except Exception:
            pass
        if following is not None:
            try:
                following(function, args, kwargs, output)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise

    after_call._rightpool = True  # type: ignore[attr-defined]
    return after_call


def _meet(key: Any, function: Any, args: Any, kwargs: Any, output: Any) -> tuple[Track, batch.Rows] | None:
    """A function called for the first time: is it a candidate, and where is its batch?"""
    global platform
    entry: tuple[Track, batch.Rows] | None = None
    if len(_known) >= _MAX_FUNCTIONS:
        return None
    try:
        module = str(getattr(function, "__module__", None))
        ours = module == "jax" or module.startswith("jax.")
        mapped = module == "jax._src.pmap"
        if mapped or not ours:
            layout = batch.study(sys.modules["jax"].tree_util, args, kwargs, output)
            rows = batch.none if mapped else layout.rows
            entry = Track(layout.weight, rows is not batch.none), rows
            platform = layout.platform or platform
            reporter.start()
        weakref.finalize(key, _known.pop, id(key), None).atexit = False
        _known[id(key)] = entry
    except Exception:
        return None
    return entry


def _watch_effects() -> None:
    """See the functions that JAX never runs on the fast path."""
    pjit: Any = sys.modules["jax._src.pjit"]
    original = pjit._run_python_pjit
    executables: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
    main = threading.main_thread()

    def _run_python_pjit(p: Any, args_flat: Any, fun: Any, args: Any, kwargs: Any) -> Any:
        try:
            result = original(p, args_flat, fun, args, kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        try:
            compiled = result[5]
            if compiled is not None and threading.current_thread() is main:
                if executables.get(fun) == id(compiled):  # the same one again: this was no compilation
                    entry = _known.get(id(fun), 0)
                    if entry == 0:
                        entry = _meet(fun, fun, args, kwargs, result[0])
                    if entry is not None and _log is not None:
                        _log.add(entry[0], time.perf_counter(), entry[1](args, kwargs))  # type: ignore[index]
                executables[fun] = id(compiled)
        except Exception:
            pass
        return result

    pjit._run_python_pjit = _run_python_pjit


def _watch_compilations() -> None:
    assert _log is not None
    note = _log.interruptions.append
    clock = time.perf_counter

    def listen(event: str, duration: float, **_: Any) -> None:
        if event == _COMPILED:
            note(clock())

    sys.modules["jax"].monitoring.register_event_duration_secs_listener(listen)
