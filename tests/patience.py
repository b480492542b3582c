"""Waiting in tests: for the thing itself, with a limit that only what never comes can reach."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

T = TypeVar("T")

PATIENCE: Final = 900.0
"""Seconds. A machine that does much else takes minutes for what takes seconds elsewhere, such as to import PyTorch."""

SHORTEST: Final = 0.1
"""Seconds for which shorter pauses count, since the many looks between them take as long."""

LEAST: Final = 30.0
"""Seconds for which is waited at least, once much has not come."""

_missed: Final[list[float]] = []
"""The limits that were reached in this process, each by what never came."""


def limit(seconds: float) -> float:
    """For how long is waited now: half as long for each thing that never came before. The run has failed by then, and
    where an operator does nothing at all, each test would wait for a quarter of an hour."""
    return max(min(seconds, LEAST), seconds / 2.0 ** len(_missed))


def pauses(seconds: float = PATIENCE, longest: float = 3.0) -> Iterator[float]:
    """The pauses between looks at something, until they add up to so many seconds. longest: shorter for what passes by.

    The looks themselves are not counted: on a busier machine they take longer, and so does the wait. Where a look is
    dear, as one by kubectl is, the pause is longer, so that the waiting does not take the processor from what is waited
    for.
    """
    most, waited, pause = limit(seconds), 0.0, min(0.05, longest)
    while waited < most:
        looked_at = time.monotonic()
        yield pause
        waited += max(pause, SHORTEST)
        took = time.monotonic() - looked_at - pause
        pause = min(1.2 * pause, max(0.3, 5.0 * took), longest)
    _missed.append(most)


def eventually(
    check: Callable[[], T], what: str | Callable[[], str] = "", seconds: float = PATIENCE, longest: float = 3.0
) -> T:
    """Wait for the first true result. what: is said, with the last result, where none has come."""
    most, result = limit(seconds), check()
    for pause in pauses(seconds, longest):
        if result:
            return result
        time.sleep(pause)
        result = check()
    complaint = what() if callable(what) else what
    assert result, f"not within {most:.0f} s of pauses: {complaint or check}: {result!r}"
    return result
