"""Waiting in tests: for the thing itself, with a limit that only what never comes can reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 900.0
"""Seconds. A machine that does much else takes minutes for what takes seconds elsewhere, such as to import PyTorch."""


def pauses(seconds: float = PATIENCE, longest: float = 3.0) -> Iterator[float]:
    """The pauses between looks at something, until they add up to so many seconds. longest: shorter for what passes by.

    The looks themselves are not counted: on a busier machine they take longer, and so does the wait. Where a look is
    dear, as one by kubectl is, the pause is longer, so that the waiting does not take the processor from what is waited
    for.
    """
    waited, pause = 0.0, min(0.05, longest)
    while waited < seconds:
        looked_at = time.monotonic()
        yield pause
        waited += pause
        took = time.monotonic() - looked_at - pause
        pause = min(1.2 * pause, max(0.3, 5.0 * took), longest)


def eventually(
    check: Callable[[], T], what: str | Callable[[], str] = "", seconds: float = PATIENCE, longest: float = 3.0
) -> T:
    """Wait for the first true result. what: is said, with the last result, where none has come."""
    result = check()
    for pause in pauses(seconds, longest):
        if result:
            return result
        time.sleep(pause)
        result = check()
    complaint = what() if callable(what) else what
    assert result, f"not within {seconds:.0f} s of pauses: {complaint or check}: {result!r}"
    return result
