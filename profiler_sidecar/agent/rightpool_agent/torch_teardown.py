"""Tears CUPTI down at the end of a trace, and sees that it is done before anything else happens.

Kineto does it on a thread of its own, which waits for a call of CUDA, with no end. A process that ends meanwhile, or a
child that is forked then, waits for that thread for ever as it destroys what the thread waits with. So such a call is
made at once, again and again until the thread is gone, and the variable that asks Kineto for it is set no longer than
our trace ends: a profiler of the program's own, and its children, end as they would.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

_ASKED = "TEARDOWN_CUPTI"
_THREADS = "/proc/self/task"
_PAUSE = 0.0005  # seconds between calls
_LONGEST = 2.0  # seconds; some milliseconds in fact

_waiting: frozenset[str] = frozenset()  # threads that appeared as the trace ended, and may be Kineto's


def end(stop: Any) -> Any:
    """What `stop` returns, which ends a trace of the GPU. Called by the thread that began it."""
    global _waiting
    before = _threads()
    theirs = _ASKED in os.environ
    if not theirs:
        os.putenv(_ASKED, "1")
    try:
        return stop()
    finally:
        if not theirs:
            os.unsetenv(_ASKED)
        _waiting = _threads() - before
        settle()


def settle() -> None:
    """Until CUPTI is torn down, if it is about to be: also before a fork, and before the process ends."""
    global _waiting
    late = time.monotonic() + _LONGEST
    while _waiting:
        try:
            sys.modules["torch"]._C._cuda_getDevice()  # allowed whatever the program does, such as capture a graph
        except Exception:
            break
        time.sleep(_PAUSE)
        _waiting &= _threads()
        if time.monotonic() > late:
            break
    _waiting = frozenset()


def forget() -> None:
    """In a forked child, which has no threads of its parent."""
    global _waiting
    _waiting = frozenset()


def _threads() -> frozenset[str]:
    try:
        return frozenset(os.listdir(_THREADS))
    except OSError:
        return frozenset()
