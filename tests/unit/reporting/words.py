"""Whether there are words for a type, for tests of texts."""

from collections.abc import Callable
from typing import Any


def words_of(text: Callable[[Any], str], kind: type[Any]) -> str:
    """The text, or an ellipsis where it is made of values. Raises NotImplementedError where there is none."""
    try:
        return text(kind.__new__(kind))
    except AttributeError:
        return "…"
