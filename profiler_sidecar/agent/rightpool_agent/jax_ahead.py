"""Functions that a JAX program has compiled ahead of time: `jit(f).lower(…).compile()`.

Their first call comes through `Compiled.call` in Python, as do all of those with side effects; later ones are seen by
the post hook. What is traced, lowered and compiled is followed on its way, so that its loops are known.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

from . import jax_loops
from .methods import call_after

_functions: dict[int, Any] = {}  # id(executable) → weak reference to the function that calls it
_lowered: dict[int, jax_loops.Turns] = {}  # id(Lowered) → what a call does
_turns: dict[int, jax_loops.Turns] = {}  # id(executable) → the same


def install(note: Callable[[Any, Any, Any, Any, jax_loops.Turns], None]) -> None:
    """`note(function, args, kwargs, result, turns)` is told of calls in Python."""
    stages: Any = sys.modules["jax._src.stages"]
    executable: Any = sys.modules["jax._src.interpreters.pxla"].MeshExecutable

    def created(self: Any, function: Any) -> None:
        if function is not None:
            _functions[id(self)] = weakref.ref(function)
            weakref.finalize(self, _forget, id(self)).atexit = False

    def lowered(self: Any, result: Any) -> None:
        _lowered[id(result)] = jax_loops.find(self.jaxpr)
        weakref.finalize(result, _lowered.pop, id(result), None).atexit = False

    def compiled(self: Any, result: Any) -> None:
        turns = _lowered.get(id(self))
        if turns is not None:
            _turns[id(result._executable)] = turns

    call_after(executable, "create_cpp_call", created)
    call_after(stages.Traced, "lower", lowered)
    call_after(stages.Lowered, "compile", compiled)
    original = stages.Compiled.call

    def call(*a: Any, **k: Any) -> Any:
        try:
            result = original(*a, **k)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        try:
            key = id(a[0].executable)
            reference = _functions.get(key)
            function = None if reference is None else reference()
            turns = _turns.get(key, jax_loops.ONCE)
            note(a[0].executable if function is None else function, a[1:], k, result, turns)
        except Exception:
            pass
        return result

    stages.Compiled.call = staticmethod(functools.wraps(original)(call))


def _forget(key: int) -> None:
    _functions.pop(key, None)
    _turns.pop(key, None)
