"""How long a server takes by what it has to do, window by window: its rate is what comes in, and says nothing of it.

Two programs are compared by windows of like loads. What these still differ by counts, too: seconds grow with the load
by some power of it between 0, where a batch takes as long whatever is in it, and 1, where nothing is gained by batches.
Which one is told by windows of several loads, beside a prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Final, NamedTuple

from rightpool.api.variation import MAX_RECENT
from rightpool.profiles.loads import batch_of
from rightpool.profiles.served import RequestCounter, ServedWindow, added

FEWEST_REQUESTS: Final = 20.0
"""With fewer a window tells nothing."""
_LIKE: Final = 1.25
"""Loads outside of those before by no more than this factor are like them."""
_WHOLE: Final = 0.95  # of a window: readings do not end when it does
# Of the power: what is usual of servers, a standard deviation, and that of the log of a window's seconds.
_POWER: Final = 0.5
_POWER_SD: Final = 0.25
_WINDOW_SD: Final = 0.05


class ServiceWindow(NamedTuple):
    """What all replicas that were read answered in one window."""

    load: float
    """Requests of a batch, or those that share a token's step, in the mean."""
    seconds: float
    """Of a batch, or from one token to the next, in the mean."""
    requests: float
    """Answered in it."""
    failed: float
    """Of these, with an error of the server's own."""


class ServiceWindows:
    """The newest windows of one Revision. There is one writer."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        """Which one."""
        self.whole: tuple[ServiceWindow, ...] = ()
        """Those that are over, the newest last; the very object of before until another one is."""
        self._parts: list[ServedWindow] = []

    def append(self, read: ServedWindow, seconds: float) -> None:
        """What came between two readings. seconds: how long a window is."""
        self._parts.append(read)
        if math.fsum(part.seconds for part in self._parts) < _WHOLE * seconds:
            return
        whole, self._parts = added(self._parts), []
        found = None if whole is None else service_of(whole)
        if found is not None:
            self.whole = (*self.whole, found)[-MAX_RECENT:]


class LikeLoad(NamedTuple):
    """Windows of two programs as if all had had the load of the first one."""

    before: tuple[float, ...]
    """Batches a second of one replica, or tokens a second of one request, window by window."""
    after: tuple[float, ...]
    """The same of the second program."""
    sd: float
    """Standard deviation of the logarithm of their ratio, for that their loads differ."""


def service_of(window: ServedWindow) -> ServiceWindow | None:
    """None where it does not tell how long batches or tokens take, or too few requests came."""
    load, seconds = batch_of(window)
    requests = window.counts.counters.get(RequestCounter.REQUESTS) or 0.0
    if seconds is None or seconds <= 0.0 or requests < FEWEST_REQUESTS:
        return None
    return ServiceWindow(load, seconds, requests, (window.error_ratio or 0.0) * requests)


def like_windows(loads: Sequence[float], windows: Sequence[ServiceWindow]) -> tuple[ServiceWindow, ...]:
    """Those with loads like these."""
    low, high = min(loads) / _LIKE, max(loads) * _LIKE
    return tuple(one for one in windows if low <= one.load <= high)


def at_like_load(before: Sequence[tuple[float, float]], after: Sequence[tuple[float, float]]) -> LikeLoad:
    """Of load and seconds in each window."""
    sides = [[(math.log(load), math.log(seconds)) for load, seconds in side] for side in (before, after)]
    centres = [(fmean(load for load, _ in side), fmean(took for _, took in side)) for side in sides]
    away = [
        (load - middle, took - centre)
        for side, (middle, centre) in zip(sides, centres, strict=True)
        for load, took in side
    ]
    known, weight = _POWER_SD**-2, _WINDOW_SD**-2
    seen = weight * math.fsum(load * load for load, _ in away)
    power = (known * _POWER + weight * math.fsum(load * took for load, took in away)) / (known + seen)
    power, like = min(max(power, 0.0), 1.0), centres[0][0]
    early, late = (tuple(math.exp(power * (load - like) - took) for load, took in side) for side in sides)
    return LikeLoad(early, late, abs(centres[1][0] - like) / math.sqrt(known + seen))
