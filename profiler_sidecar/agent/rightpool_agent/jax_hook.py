"""The place where JAX calls somebody after each execution of a compiled function, in each thread and in each version.

The place is where JAX itself checks for NaNs. Two things empty it: the user turns that check on or off, and JAX's own
operations turn it off around a piece of their tracing, which leaves "nobody" as this thread's choice. So the functions
that do this are followed by one that puts the agent's hook back, in front of JAX's own where that is wanted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]
Wrap = Callable[[Any], Hook]  # makes the agent's hook, which calls the given one afterwards


class _State:
    """JAX 0.8 and newer: one configuration object with a global and a thread's value."""

    def __init__(self) -> None:
        self._state = sys.modules["jax._src.api"]._post_hook_state
        self._unset = sys.modules["jax._src.config"].config_ext.unset

    def get_global(self) -> Any:
        return self._state.get_global()

    def set_global(self, hook: Any) -> None:
        self._state.set_global(hook)

    def get_local(self) -> Any:
        return self._state.get_local()

    def set_local(self, hook: Any) -> None:
        """None: what is set globally."""
        self._state.set_local(self._unset if hook is None else hook)

    def local_is_empty(self) -> bool:
        return self._state.get_local() is None

    def local_is_set(self) -> bool:
        return self._state.get_local() not in (None, self._unset)


class _Older:
    """JAX up to 0.7: attributes of two objects; None in a thread means what is set globally."""

    def __init__(self) -> None:
        jit = sys.modules["jax._src.api"].jax_jit
        self._global, self._local = jit.global_state, jit.thread_local_state
        self._global().post_hook, self._local().post_hook

    def get_global(self) -> Any:
        return self._global().post_hook

    def set_global(self, hook: Any) -> None:
        self._global().post_hook = hook

    def get_local(self) -> Any:
        return self._local().post_hook

    def set_local(self, hook: Any) -> None:
        self._local().post_hook = hook

    def local_is_empty(self) -> bool:
        return False

    def local_is_set(self) -> bool:
        return self._local().post_hook is not None


class Place:
    """Holds the agent's hook where JAX looks for one."""

    def __init__(self, wrap: Wrap) -> None:
        self._wrap = wrap
        self._place: Any = None
        for kind in (_State, _Older):
            try:
                self._place = kind()
                break
            except (AttributeError, KeyError):
                continue

    def install(self) -> bool:
        """Set the hook; whether JAX has kept it."""
        if self._place is None:
            return False
        self.renew()
        self.renew_here()
        config = sys.modules["jax._src.config"]
        for name in ("debug_nans", "debug_infs"):
            state = getattr(config, name)
            for attribute, after in (
                ("_update_global_hook", self.renew),
                ("_update_thread_local_hook", self.renew_here),
            ):
                _follow(state, attribute, after)
        return bool(getattr(self._place.get_global(), "_rightpool", False))

    def renew(self) -> None:
        """For all threads, in front of JAX's own."""
        current = self._place.get_global()
        if not getattr(current, "_rightpool", False):
            self._place.set_global(self._wrap(current))

    def renew_here(self) -> None:
        """For this thread, if it has made a choice of its own."""
        if self._place.local_is_empty():
            self._place.set_local(None)
        elif self._place.local_is_set():
            current = self._place.get_local()
            if not getattr(current, "_rightpool", False):
                self._place.set_local(self._wrap(current))


def _follow(state: Any, attribute: str, after: Callable[[], None]) -> None:
    """Call `after` after the hook that JAX keeps in an attribute of a configuration state."""
    original = getattr(state, attribute)

    def update(value: Any) -> None:
        original(value)
        try:
            after()
        except Exception:
            pass

    setattr(state, attribute, update)
