"""How long the program has compiled: by torch.compile, and by XLA.

Both say when a compilation ends, PyTorch also when it begins. XLA compiles what JAX has just lowered, so that the end
of a lowering is taken for a beginning, until a step is made.
"""

from __future__ import annotations

import os
import time
from typing import Any

_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_COMPILED = "/jax/core/compile/backend_compile_duration"
_TORCH = "torch"

_handler: Any = None  # PyTorch's, where callbacks are kept
_known = False  # whether anybody would say that the program compiles
_begun: dict[Any, bool] = {}  # who compiles now → whether that is certain
_since = 0.0  # when what is not in `_seconds` yet began, while anybody compiles
_seconds = 0.0
_steps = 0


def install_torch(module: Any) -> None:
    """`module` is torch._dynamo.callback."""
    global _handler
    _handler = module.callback_handler
    _register()
    _watch()


def install_jax(module: Any) -> None:
    """`module` is jax.monitoring."""
    import _thread

    def listen(event: str, duration: float, **_: Any) -> None:
        if event == _LOWERED:
            _begin(_thread.get_ident(), certain=False)
        elif event == _COMPILED:
            _end(_thread.get_ident(), duration)

    module.register_event_duration_secs_listener(listen)
    _watch()


def facts(steps: int) -> dict[str, Any]:
    """`compile_seconds` so far, with what is being compiled; nothing where nobody would say. Called once a second."""
    global _steps
    if not _known:
        return {}
    _register()
    if steps > _steps:
        for who, certain in list(_begun.items()):
            if not certain:
                _begun.pop(who, None)
    _steps = steps
    return {"compile_seconds": _seconds + (time.perf_counter() - _since if _begun else 0.0)}


def now() -> bool:
    """Whether somebody compiles."""
    return bool(_begun)


def _register() -> None:
    """PyTorch's callbacks. A reset of its compiler removes them."""
    if _handler is not None and _began not in _handler.start_callbacks:
        _handler.register_start_callback(_began)
        _handler.register_end_callback(_ended)


def _watch() -> None:
    global _known
    if not _known:
        _known = True
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    global _seconds, _steps
    _begun.clear()
    _seconds, _steps = 0.0, 0


def _began(*_: Any) -> None:
    _begin(_TORCH, certain=True)


def _ended(*_: Any) -> None:
    _end(_TORCH)


def _begin(who: Any, *, certain: bool) -> None:
    global _since
    if not _begun:
        _since = time.perf_counter()
    _begun.setdefault(who, certain)


def _end(who: Any, took: float = 0.0) -> None:
    """took: seconds, where nobody has said when it began. Compilations side by side take the time of one."""
    global _seconds, _since
    if _begun.pop(who, None) is not None:
        now = time.perf_counter()
        _seconds, _since = _seconds + now - _since, now
    elif not _begun:
        _seconds += took
