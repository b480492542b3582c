"""Steps that are replayed as a CUDA graph.

An optimizer whose step lies in the graph is called once, while the graph is captured: nothing is computed then, and
its hook is never called again. So each replay of that graph is a step of the optimizers that were captured in it.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

newest: int | None = None  # the graph whose capture began last and has not been seen to have ended; read at every step

_captured: dict[int, list[Any]] = {}  # id(graph) → weak references to the optimizers
_capturing: Callable[[], bool] = bool


def install(module: Any, count: Callable[[Any], object]) -> None:
    """`module` is torch.cuda.graphs; `count` is told of an optimizer's step."""
    global _capturing
    _capturing = module.is_current_stream_capturing
    graph = module.CUDAGraph
    begin, replay = graph.capture_begin, graph.replay
    find = _captured.get

    @functools.wraps(begin)
    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        global newest
        try:
            newest = id(self)
            if _captured.pop(newest, None) is None:
                weakref.finalize(self, _captured.pop, newest, None).atexit = False
        except Exception:
            pass
        try:
            return begin(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise

    @functools.wraps(replay)
    def replay_and_count(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = replay(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        optimizers = find(id(self))
        if optimizers is not None:
            try:
                for reference in optimizers:
                    optimizer = reference()
                    if optimizer is not None:
                        count(optimizer)
            except Exception:
                pass
        return result

    for wrapper in (capture_begin, replay_and_count):
        wrapper._torchdynamo_disable = True  # type: ignore[attr-defined]
    graph.capture_begin, graph.replay = capture_begin, replay_and_count


def captures(optimizer: Any) -> bool:
    """Is the step that `optimizer` has just made only being captured? Asked while there is a newest graph."""
    global newest
    graph = newest
    if graph is None or not _capturing():
        newest = None
        return False
    known = _captured.setdefault(graph, [])
    if all(reference() is not optimizer for reference in known):
        known.append(weakref.ref(optimizer))
    return True
