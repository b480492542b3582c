"""Threads that make the batches of a program in Python, and how long they hold up the one that makes the steps.

One thread of a process runs Python at a time. So such a thread is waited for although a batch is there: while it works,
nothing else of the process does, and the one that makes the steps does not wait for a processor.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from threading import get_native_id
from typing import Any

_GIVES = {("queue", "Queue", "put"), ("concurrent.futures._base", "Future", "set_result")}
_BY = "_rightpool_by"  # the thread that gave last, kept in what it was given to

_left = set(_GIVES)  # those that are not wrapped yet
_threads: set[int] = set()  # of the system, that gave what the thread that makes the steps took
_taker = 0  # that thread


def install() -> None:
    """Wrap what the program has imported by now. Called again and again."""
    for key in list(_left):
        module, name, method = key
        owner: Any = getattr(sys.modules.get(module), name, None)
        if owner is not None and hasattr(owner, method):
            _left.discard(key)
            _wrap(owner, method)


def took(held: Any) -> None:
    """The thread that makes the steps gets from `held`."""
    global _taker
    by = getattr(held, _BY, None)
    if by is not None:
        _taker = get_native_id()
        if by != _taker:
            _threads.add(by)


class Holds:
    """How long feeders have held up the steps."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._last: tuple[float, ...] | None = None  # the clock, the process' time, and what else is waited for
        self._used: dict[int, float] = {}  # thread → seconds of a processor

    def seconds(self, waited: float) -> float:
        """So far. waited: seconds in which that thread has waited for a batch, which are counted already."""
        used = {thread: seconds for thread in list(_threads) if (seconds := _used(thread)) is not None}
        fed = sum(seconds - self._used.get(thread, seconds) for thread, seconds in used.items())
        ready = _ready()
        now = None if ready is None else (time.perf_counter(), time.process_time(), waited + ready)
        if self._last is not None and now is not None:
            clock, process, waits = (after - before for after, before in zip(now, self._last))
            self._seconds += max(0.0, min(fed, clock - waits - (process - fed)))
        self._last, self._used = now, used
        return self._seconds


def _used(thread: int) -> float | None:
    """None of one that has ended."""
    try:
        return time.clock_gettime((~thread << 3) | 6)  # as Linux numbers the clocks of threads
    except OSError:
        _threads.discard(thread)
        return None


def _ready() -> float | None:
    """Seconds for which that thread was ready to run and had no processor; None where the kernel does not say."""
    try:
        with open(f"/proc/self/task/{_taker}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def _wrap(owner: Any, name: str) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def give(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            setattr(self, _BY, get_native_id())
        except AttributeError:
            pass  # a class of the program that takes no more attributes
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise

    setattr(owner, name, give)


os.register_at_fork(after_in_child=_threads.clear)
