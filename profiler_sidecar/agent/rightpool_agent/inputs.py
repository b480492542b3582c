"""How long the thread that makes the steps waits for its data: for a batch of PyTorch's DataLoader, and in gets that
block, of queues, pipes, pools and futures, by which other threads and processes hand over what they have read.

Where it takes from none of these, nothing is known: the program may read its data by itself, or have no need to. A get
that comes seldom is about something else. What a program waits for within a save, or while it compiles, is no data.
With them counts how long threads that make its batches in Python hold it up while a batch is there.
"""

from __future__ import annotations

import functools
import os
import queue  # noqa: F401  # JAX does not, and a program may keep the method before we look again
import sys
import time
from _thread import get_ident
from typing import Any

from . import compiling, feeders, saves

_SELDOM = 2  # steps for each get, at most
_GETS = {  # method → module, class and the position of its argument that says whether to block, if it has one
    ("queue", "Queue", "get"): 1,
    ("multiprocessing.queues", "Queue", "get"): 1,
    ("multiprocessing.queues", "SimpleQueue", "get"): None,
    ("multiprocessing.connection", "_ConnectionBase", "recv"): None,
    ("multiprocessing.connection", "_ConnectionBase", "recv_bytes"): None,
    ("multiprocessing.pool", "ApplyResult", "get"): None,
    ("multiprocessing.pool", "IMapIterator", "next"): None,
    ("multiprocessing.pool", "IMapIterator", "__next__"): None,
    ("concurrent.futures._base", "Future", "result"): None,
}

_waited = 0.0  # seconds
_batches = 0  # of loaders
_gets = 0
_inside = False  # that thread waits: a loader gets from queues
_left = set(_GETS)  # those that are not wrapped yet


class Account:
    """What the steps of a framework have waited for."""

    def __init__(self) -> None:
        self._first: tuple[float, int, int] | None = None
        self._last = (0.0, 0, 0)
        self._steps = 0
        self._holds = feeders.Holds()

    def step(self) -> None:
        """A step has ended. What was waited for before the first one, with the start of workers, is in none."""
        self._last = _waited, _batches, _gets
        if self._first is None:
            self._first = self._last

    def facts(self, steps: int, seen: bool) -> dict[str, float]:
        """`input_seconds` in the steps so far; nothing where they take their data from nothing that is watched.
        seen: whether each step is told here. Called by the agent's thread, once a second."""
        if not seen and steps > self._steps:
            self.step()
        self._steps = steps
        if self._first is None:
            return {}
        waited, batches, gets = (now - then for now, then in zip(self._last, self._first))
        watched = batches or (gets and _SELDOM * gets >= steps - 1)
        return {"input_seconds": waited + self._holds.seconds(_waited)} if watched else {}


def install() -> None:
    """Wrap what the program has imported by now. Called again and again."""
    feeders.install()
    for key in list(_left):
        module, name, method = key
        owner: Any = getattr(sys.modules.get(module), name, None)
        if owner is not None and hasattr(owner, method):
            _left.discard(key)
            _wrap(owner, method, _GETS[key])


def begin() -> float | None:
    """A batch of a loader is asked for. When, if it is waited for now; None where that is no thread's that steps, or
    happens within a wait that is counted."""
    global _inside
    if _inside or get_ident() != saves.thread:
        return None
    _inside = True
    return time.perf_counter()


def end(began: float | None) -> None:
    """The batch is there, or there is none."""
    global _batches
    if began is not None:
        _batches += 1
        _end(began)


def _end(began: float) -> None:
    global _inside, _waited
    _inside = False
    _waited += time.perf_counter() - began


def _wrap(owner: Any, name: str, place: int | None) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def get(*args: Any, **kwargs: Any) -> Any:
        global _gets
        blocks = place is None or (args[place] if len(args) > place else kwargs.get("block", True))
        began = begin() if blocks and saves.since is None and not compiling.now() else None
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        finally:
            if began is not None:
                _gets += 1
                _end(began)
                feeders.took(args[0])

    setattr(owner, name, get)


def _forget() -> None:
    """In a forked child, which may have been made within a wait of its parent."""
    global _inside
    _inside = False


os.register_at_fork(after_in_child=_forget)
