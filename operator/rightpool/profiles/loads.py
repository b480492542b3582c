"""What a server's batches take by how much is in them, at each place where it has run; of a server that makes tokens,
what a token and the first one take by how many requests share it.

The newest windows count most: of each load as many are remembered as come in a few minutes, and of another program than
before next to nothing. So an edit that makes it slower is seen soon, and what is known of other loads stays a hint.
"""

from __future__ import annotations

import json
import math
from statistics import NormalDist
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rightpool.profiles.latency import Distribution
from rightpool.profiles.served import RequestCounter, RequestTime, ServedWindow

PLACES: Final = 4
"""Of which it is remembered, the newest ones."""

_STEP: Final = math.log(1.25)  # loads that are nearer to each other are one
_REMEMBERED: Final = 20.0  # windows of each load
_OF_ANOTHER: Final = 0.05  # what is left of a window's weight when another program runs
_ENOUGH: Final = 20.0  # requests of a window that counts as one

_Bin = tuple[float, ...]  # load, seconds and windows; of tokens also those of TokenPoints
_PLAIN: Final = 3  # numbers of a bin without tokens
_TOKENS: Final = 7
_TAIL: Final = 0.02  # the share of late ones by which a distribution is known


class TokenPoints(NamedTuple):
    """The same of a server that makes tokens, beside the seconds between two of them."""

    spread: npt.NDArray[np.float64]
    """Standard deviation of the log of single ones around their mean."""
    first: npt.NDArray[np.float64]
    """Seconds to the first token, without the wait to be begun; NaN where nobody tells."""
    first_spread: npt.NDArray[np.float64]
    """Standard deviation of the log of single ones around that mean; NaN where nobody tells."""
    cache: npt.NDArray[np.float64]
    """Share of a replica's key-value cache that one request has, in the mean; NaN where nobody tells."""


class Points(NamedTuple):
    """Means over windows of like loads."""

    load: npt.NDArray[np.float64]
    """Requests of a batch, or those that share a token's step."""
    seconds: npt.NDArray[np.float64]
    """Of a batch, or from one token to the next."""
    weight: npt.NDArray[np.float64]
    """Windows."""
    tokens: TokenPoints | None = None
    """Of a server that makes tokens."""


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
        more = _tokens_of(window)
        before, bins = self._places.pop(place, (program, {}))
        if before != program:
            bins = {index: (*one[:2], one[2] * _OF_ANOTHER, *one[3:]) for index, one in bins.items()}
        index, new = round(math.log(load) / _STEP), min(requests / _ENOUGH, 1.0)
        old = bins.get(index, ())
        old = old if len(old) == _PLAIN + len(more) else (load, seconds, 0.0, *more)
        weight = min(old[2] + new, _REMEMBERED)
        mixed = [_mixed(was, now, new / weight) for was, now in zip(old, (load, seconds, weight, *more), strict=True)]
        bins[index] = (*mixed[:2], weight, *mixed[3:])
        self._places[place] = program, bins
        for forgotten in [*self._places][:-PLACES]:
            del self._places[forgotten]

    @property
    def known(self) -> bool:
        """Whether anything is known of any place."""
        return bool(self._places)

    @property
    def seen(self) -> frozenset[tuple[str, int]]:
        """Of each place, how often the windows that are known of it have doubled."""
        weights = {place: sum(one[2] for one in bins.values()) for place, (_, bins) in self._places.items()}
        return frozenset((place, math.floor(math.log2(weight))) for place, weight in weights.items())

    def at(self, place: str) -> Points | None:
        """What is known of a place; None where nothing is."""
        _, bins = self._places.get(place, ("", {}))
        if not bins:
            return None
        numbers = max(map(len, bins.values()))  # what is no longer timed so is another program's
        rows = [bins[index] for index in sorted(bins) if len(bins[index]) == numbers]
        load, seconds, weight, *more = np.array(rows).T
        return Points(load, seconds, weight, TokenPoints(*more) if more else None)

    def stored(self) -> bytes:
        """As it is stored."""
        body = {
            place: [program, *([_number(one) for one in each] for _, each in sorted(bins.items()))]
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
                for row in rows:
                    if len(row) not in (_PLAIN, _TOKENS) or not all(one > 0.0 for one in row[:_PLAIN]):
                        raise ValueError("a load of it is none")
                    each = tuple(math.nan if one is None else float(one) for one in row)
                    bins[round(math.log(each[0]) / _STEP)] = each
                found._places[place] = str(program), bins
        except (AttributeError, TypeError, OverflowError) as error:
            raise ValueError(f"it has no loads: {error}") from None
        return found


def batch_of(window: ServedWindow) -> tuple[float, float | None]:
    """How many requests its batches had, 1 where nobody says, and the seconds that one took. Of a server that does not
    say how long its batches take, a request's time without its wait. Of one that makes tokens: how many requests share
    a token's step, and the seconds from one token to the next."""
    if RequestCounter.TOKENS_OUT in window.counts.counters:
        return _step_of(window)
    load = max(window.batch_size or 1.0, 1.0)
    if window.batch_seconds is not None:
        return load, window.batch_seconds
    if window.mean_seconds is None:
        return load, None
    return load, window.mean_seconds - (window.queue_seconds or 0.0)


def _step_of(window: ServedWindow) -> tuple[float, float | None]:
    """A token meets its own request and those that are there in the mean: all seconds between tokens ÷ those that
    passed, of each replica."""
    between = window.counts.times.get(RequestTime.BETWEEN_TOKENS)
    if between is None or not between.sum or between.mean is None or window.seconds <= 0.0:
        return 1.0, None
    return 1.0 + between.sum / window.seconds / window.replicas, between.mean


def _tokens_of(window: ServedWindow) -> tuple[float, ...]:
    """The numbers of TokenPoints; none of a server that makes no tokens."""
    if RequestCounter.TOKENS_OUT not in window.counts.counters:
        return ()
    times, cache = window.counts.times, window.cache_share or math.nan
    spread, first = _spread(times.get(RequestTime.BETWEEN_TOKENS)), times.get(RequestTime.FIRST_TOKEN)
    if first is None or first.mean is None:
        return spread, math.nan, math.nan, cache
    begun = first.mean - (window.queue_seconds or 0.0)
    return spread, begun if begun > 0.0 else math.nan, _spread(first), cache


def _spread(times: Distribution | None) -> float:
    """Standard deviation of the log of a lognormal distribution of the same mean, which has as many above an edge: that
    edge above the mean beyond which there are about _TAIL of them. NaN where nothing tells."""
    mean = None if times is None else times.mean
    if times is None or not mean:
        return math.nan
    found = []
    for edge, count in zip(times.edges, times.counts, strict=True):
        share = max(times.total - count, 0.5) / max(times.total, 1.0)  # of none at all half a one
        z = NormalDist().inv_cdf(1.0 - share) if edge > mean and share < 0.5 else 0.0
        beyond = z * z - 2.0 * math.log(edge / mean) if z else -1.0
        if beyond >= 0.0:  # else no such distribution has as many there: single far ones
            found.append((abs(math.log(share / _TAIL)), z - math.sqrt(beyond)))
    return min(found)[1] if found else math.nan


def _mixed(was: float, now: float, part: float) -> float:
    """What is not known leaves what was."""
    if math.isnan(was) or math.isnan(now):
        return was if math.isnan(now) else now
    return was + part * (now - was)


def _number(one: float) -> float | None:
    return None if math.isnan(one) else float(f"{one:.4g}")
