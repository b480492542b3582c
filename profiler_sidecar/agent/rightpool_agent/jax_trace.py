"""A short XLA trace of the running program, without touching the profiler the user may want for himself.

Works on XLA's profiler session below `jax.profiler`. Only one session can exist in a process: none is begun while the
program has one, and one of ours makes way the moment the program asks for its own.

A program with a GPU is not traced: what such a trace says has been compared with nothing yet, and one once ended its
program. tests/gpu/check_agent_jax.py --trace shows what it does; with JAX 0.11 it has done no harm.
"""

from __future__ import annotations

import _thread
import functools
import os
import sys
from typing import Any

ENDING = ".xplane.pb"
_STEPS = 5
_SHORTEST = 0.2  # seconds
_PLATFORMS = ("cpu", "tpu")  # a session traces all that the process has
_MAX_BYTES = 4 << 20  # more than the sidecar, which is small, would read

_lock = _thread.allocate_lock()
_session: Any = None


def install() -> None:
    """Let the program's own traces go first."""
    profiler: Any = sys.modules["jax._src.profiler"]
    public: Any = sys.modules["jax.profiler"]
    original = profiler.start_trace

    @functools.wraps(original)
    def start_trace(*args: Any, **kwargs: Any) -> Any:
        finish(_session)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise

    os.register_at_fork(after_in_child=_forget)
    profiler.start_trace = start_trace
    public.start_trace = start_trace


def _forget() -> None:
    """In a forked child: the parent's thread may have held the lock."""
    global _lock, _session
    _lock, _session = _thread.allocate_lock(), None


def begin() -> Any:
    """Start a session with device events and no Python ones; None where none may be, or XLA refuses."""
    global _session
    if not _safe():
        return None
    profiler = sys.modules["jax._src.profiler"]
    with _lock:
        if _session is not None or profiler._profile_state.profile_session is not None:
            return None
        if profiler._profiler_server is not None:
            return None  # someone may be capturing through the server
        try:
            options = profiler.ProfileOptions()
            options.python_tracer_level = 0
            options.host_tracer_level = 2  # on CPU the operations themselves are host events
            options.enable_hlo_proto = False
            _session = profiler._profiler.ProfilerSession(options)
        except Exception:
            _session = None
        return _session


def _safe() -> bool:
    """Is everything that the program has its devices by known to bear a trace?"""
    try:
        backends = list(sys.modules["jax._src.xla_bridge"]._backends.values())
        return bool(backends) and all(one.platform in _PLATFORMS for one in backends)
    except (AttributeError, KeyError):
        return False


def ready(session: Any, steps: int, seconds: float) -> bool:
    """Has the session seen enough? Fast steps are averaged over more of them."""
    return steps >= _STEPS and seconds > _SHORTEST


def abandon(session: Any) -> None:
    """End the session without a result."""
    finish(session)


def finish(session: Any, path: str | None = None) -> bool:
    """End the session and write it to `path`; False if there is nothing, or it has been ended before."""
    global _session
    with _lock:
        if session is None or session is not _session:
            return False
        _session = None
        try:
            body = session.stop()
        except Exception:
            return False
    if path is None or not body or len(body) > _MAX_BYTES:
        return False
    with open(path, "wb") as file:
        file.write(body)
    return True
