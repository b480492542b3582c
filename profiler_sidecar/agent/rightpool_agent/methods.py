"""Methods of the program's libraries after which something of ours is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def call_after(owner: Any, name: str, then: Callable[[Any, Any], None]) -> None:
    """After each call of this method of a class that succeeds, `then(self, result)`. What fails in it is nobody's
    concern. Raises AttributeError where there is no such method."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        try:
            then(self, result)
        except Exception:
            pass
        return result

    setattr(owner, name, method)
