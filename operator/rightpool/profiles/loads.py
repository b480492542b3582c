"""What a server's batches take by how much is in them, at each place where it has run.

The newest windows count most: of each load as many are remembered as come in a few minutes, and of another program than
before next to nothing. So an edit that makes it slower is seen soon, and what is known of other loads stays a hint.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rightpool.profiles.served import RequestCounter, ServedWindow

PLACES: Final = 4
"""Of which it is remembered, the newest ones."""

_STEP: Final = math.log(1.25)  # loads that are nearer to each other are one
_REMEMBERED: Final = 20.0  # windows of each load
_OF_ANOTHER: Final = 0.05  # what is left of a window's weight when another program runs
_ENOUGH: Final = 20.0  # requests of a window that counts as one

_Bin = tuple[float, float, float]  # load, seconds, windows


class Points(NamedTuple):
    """Means over windows of like loads."""

    load: npt.NDArray[np.float64]
    """Requests of a batch."""
    seconds: npt.NDArray[np.float64]
    """Of a batch."""
    weight: npt.NDArray[np.float64]
    """Windows."""


class Loads:
    """By place, in the order in which they were seen last."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, dict[int, _Bin]]] = {}

    def extend(self, window: ServedWindow, place: str, program: str) -> None:
        """What a window says. place: a pool and the chips of a replica there. program: the hash of what runs."""
        load, seconds = batch_of(window)
        requests = window.counts.counters.get(RequestCounter.REQUESTS) or 0.0
        if seconds is None or seconds <= 0.0 or requests <= 0.0:
            return
        before, bins = self._places.pop(place, (program, {}))
        if before != program:
            bins = {index: (one, two, three * _OF_ANOTHER) for index, (one, two, three) in bins.items()}
        index, new = round(math.log(load) / _STEP), min(requests / _ENOUGH, 1.0)
        old_load, old_seconds, weight = bins.get(index, (load, seconds, 0.0))
        weight = min(weight + new, _REMEMBERED)
        part = new / weight
        bins[index] = old_load + part * (load - old_load), old_seconds + part * (seconds - old_seconds), weight
        self._places[place] = program, bins
        for old in [*self._places][:-PLACES]:
            del self._places[old]

    @property
    def known(self) -> bool:
        """Whether anything is known of any place."""
        return bool(self._places)

    @property
    def seen(self) -> frozenset[tuple[str, int]]:
        """Of each place, how often the windows that are known of it have doubled."""
        weights = {place: sum(weight for _, _, weight in bins.values()) for place, (_, bins) in self._places.items()}
        return frozenset((place, math.floor(math.log2(weight))) for place, weight in weights.items())

    def at(self, place: str) -> Points | None:
        """What is known of a place; None where nothing is."""
        _, bins = self._places.get(place, ("", {}))
        if not bins:
            return None
        load, seconds, weight = np.array([bins[index] for index in sorted(bins)]).T
        return Points(load, seconds, weight)

    def stored(self) -> bytes:
        """As it is stored."""
        body = {
            place: [program, *([float(f"{one:.4g}") for one in each] for _, each in sorted(bins.items()))]
            for place, (program, bins) in self._places.items()
        }
        return json.dumps(body, separators=(",", ":")).encode()

    @classmethod
    def read(cls, stored: bytes) -> Loads:
        """What was stored. Raises ValueError where it can't be read."""
        found = cls()
        try:
            body: dict[str, list[Any]] = json.loads(stored)
            for place, (program, *rows) in body.items():
                bins: dict[int, _Bin] = {}
                for load, seconds, weight in rows:
                    if not (load > 0.0 and seconds > 0.0 and weight > 0.0):
                        raise ValueError("a load of it is none")
                    bins[round(math.log(load) / _STEP)] = float(load), float(seconds), float(weight)
                found._places[place] = str(program), bins
        except (AttributeError, TypeError, OverflowError) as error:
            raise ValueError(f"it has no loads: {error}") from None
        return found


def batch_of(window: ServedWindow) -> tuple[float, float | None]:
    """How many requests its batches had, 1 where nobody says, and the seconds that one took. Of a server that does not
    say how long its batches take, a request's time without its wait; none of one that makes tokens, whose requests
    share its batches as long as they last."""
    load = max(window.batch_size or 1.0, 1.0)
    if window.batch_seconds is not None:
        return load, window.batch_seconds
    if RequestCounter.TOKENS_OUT in window.counts.counters or window.mean_seconds is None:
        return load, None
    return load, window.mean_seconds - (window.queue_seconds or 0.0)
