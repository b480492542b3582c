"""What a server says of the requests it answers: counters since it started, and what came between two readings.

Counters are what a server of any dialect has in common, in seconds and whole things. What a server does not say is
absent. A counter that fell was started anew, and of the time between nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from typing import Final, NamedTuple

from rightpool.api.value_object import value_object
from rightpool.profiles.latency import Between, Distribution
from rightpool.profiles.sample import Quality

_JITTER: Final = 0.05  # of the time between two readings: that much is no reason to give up whole numbers
_CACHED: Final = 0.05  # share of a cache in use: SGLang tells hundredths, so that of less a tenth and more may be off


class RequestCounter(StrEnum):
    """What servers count, since they started. The value is its name in documents and messages."""

    REQUESTS = "requests"
    ERRORS = "errors"  # that the server itself failed, not those that it refused as malformed
    SECONDS = "seconds"  # of all requests, of a server that has no distribution
    TIMED = "timed"  # the requests of SECONDS
    QUEUE_SECONDS = "queueSeconds"
    QUEUED = "queued"  # what QUEUE_SECONDS is the sum over
    BATCH_SECONDS = "batchSeconds"
    TIMED_BATCHES = "timedBatches"  # what BATCH_SECONDS is the sum over
    BATCHED = "batched"  # requests in batches
    BATCHES = "batches"
    TOKENS_IN = "tokensIn"
    TOKENS_OUT = "tokensOut"


class RequestTime(StrEnum):
    """Times of requests whose distribution servers tell."""

    WHOLE = "latency"
    FIRST_TOKEN = "timeToFirstToken"
    BETWEEN_TOKENS = "interTokenLatency"


class RequestLevel(StrEnum):
    """What is so at the moment of a reading."""

    CONCURRENCY = "concurrency"  # requests that the server works on
    WAITING = "waiting"  # requests that it has not begun
    CACHE_USED = "cacheUsed"  # the share of its key-value cache that requests in work have, 0-1


@value_object
class ServerCounts:
    """What a server, or all replicas together, have counted: since their start, or between two readings."""

    counters: Mapping[RequestCounter, float]
    """What it does not count is absent."""
    times: Mapping[RequestTime, Distribution]
    """The distributions that it tells."""
    levels: Mapping[RequestLevel, float]
    """As they were at the end."""
    derived: frozenset[RequestCounter] = frozenset()
    """Counters that stand for what they are called: completed requests where started ones are not counted."""

    def since(self, before: ServerCounts) -> ServerCounts | None:
        """What came after an earlier reading of the same server. None where it was started anew since then: one
        counter that fell tells that of all."""
        counters = {name: now - before.counters[name] for name, now in self.counters.items() if name in before.counters}
        if any(grown < 0 for grown in counters.values()):
            return None
        times = {}
        for name, now in self.times.items():
            then = before.times.get(name)
            if then is None or (then.total and then.edges != now.edges):
                continue  # another version of the server counts by other edges, from now on
            grown = now.since(then)
            if grown is None:
                return None
            times[name] = grown
        return ServerCounts(counters, times, self.levels, self.derived)

    def plus(self, other: ServerCounts) -> ServerCounts:
        """Both replicas together. What one of them does not tell is not told of both."""
        return ServerCounts(
            {name: value + other.counters[name] for name, value in self.counters.items() if name in other.counters},
            {name: one.plus(other.times[name]) for name, one in self.times.items() if name in other.times},
            {name: value + other.levels[name] for name, value in self.levels.items() if name in other.levels},
            self.derived | other.derived,
        )

    def scaled(self, factor: float) -> ServerCounts:
        """So many times as much of all that is counted."""
        counters = {name: value * factor for name, value in self.counters.items()}
        times = {name: one.scaled(factor) for name, one in self.times.items()}
        return ServerCounts(counters, times, self.levels, self.derived)

    def ratio(self, of: RequestCounter, over: RequestCounter) -> float | None:
        """None where one of them is unknown, or there was nothing to divide by."""
        top, bottom = self.counters.get(of), self.counters.get(over)
        return None if top is None or not bottom else top / bottom


@value_object
class ServedWindow:
    """What the replicas of a Revision answered between two readings."""

    at: float
    """Unix seconds of its end."""
    seconds: float
    """How long it is."""
    counts: ServerCounts
    """What came in it, over the replicas that were read at its beginning and its end."""
    replicas: int
    """How many those are."""
    complete: bool
    """Whether these are all replicas that take requests. Else a sum over them says nothing of the demand."""

    def together(self, later: ServedWindow) -> ServedWindow:
        """This one and one that is later. Levels are those of the later one."""
        added = self.counts.plus(later.counts)
        counts = ServerCounts(added.counters, added.times, later.counts.levels, added.derived)
        complete = self.complete and later.complete
        return ServedWindow(
            later.at, self.seconds + later.seconds, counts, min(self.replicas, later.replicas), complete
        )

    def beside(self, other: ServedWindow) -> ServedWindow:
        """This one and what others answered in the same time."""
        counts = self.counts.plus(other.counts.scaled(self.seconds / other.seconds))
        complete = self.complete and other.complete
        return ServedWindow(self.at, self.seconds, counts, self.replicas + other.replicas, complete)

    def rate(self, counter: RequestCounter) -> float | None:
        """Of all replicas, a second; None where it was not counted at all of them."""
        counted = self.counts.counters.get(counter) if self.complete else None
        return None if counted is None or self.seconds <= 0 else counted / self.seconds

    @property
    def requests_per_second(self) -> float | None:
        """All replicas together."""
        return self.rate(RequestCounter.REQUESTS)

    @property
    def error_ratio(self) -> float | None:
        """Failed requests ÷ requests; None where there were none."""
        ratio = self.counts.ratio(RequestCounter.ERRORS, RequestCounter.REQUESTS)
        return None if ratio is None else min(ratio, 1.0)

    @property
    def mean_seconds(self) -> float | None:
        """Of a request, whole."""
        whole = self.counts.times.get(RequestTime.WHOLE)
        if whole is not None and whole.mean is not None:
            return whole.mean
        return self.counts.ratio(RequestCounter.SECONDS, RequestCounter.TIMED)

    @property
    def queue_seconds(self) -> float | None:
        """That a request waited, in the mean."""
        return self.counts.ratio(RequestCounter.QUEUE_SECONDS, RequestCounter.QUEUED)

    @property
    def batch_seconds(self) -> float | None:
        """Of a batch, in the mean."""
        return self.counts.ratio(RequestCounter.BATCH_SECONDS, RequestCounter.TIMED_BATCHES)

    @property
    def batch_size(self) -> float | None:
        """Requests in a batch, in the mean."""
        return self.counts.ratio(RequestCounter.BATCHED, RequestCounter.BATCHES)

    @property
    def concurrency(self) -> float | None:
        """Requests in work at a replica, at its end."""
        level = self.counts.levels.get(RequestLevel.CONCURRENCY)
        return None if level is None else level / self.replicas

    @property
    def cache_share(self) -> float | None:
        """Of a replica's key-value cache, the share that one request in work has at its end; None where too little of
        it is in use to tell."""
        used, running = (self.counts.levels.get(one) for one in (RequestLevel.CACHE_USED, RequestLevel.CONCURRENCY))
        return used / running if used and running and used / self.replicas >= _CACHED else None

    def late(self, limit: float, time: RequestTime = RequestTime.WHOLE) -> Between | None:
        """The share of requests that took longer than so many seconds; None where no distribution says that."""
        counted = self.counts.times.get(time)
        return None if counted is None else counted.later_than(limit)

    def quantile(self, share: float, time: RequestTime = RequestTime.WHOLE) -> Between | None:
        """Seconds; None where no distribution says that."""
        counted = self.counts.times.get(time)
        return None if counted is None else counted.quantile(share)

    @property
    def quality(self) -> Quality:
        """Of its number of requests."""
        return Quality.DERIVED if RequestCounter.REQUESTS in self.counts.derived else Quality.MEASURED


class Sides(NamedTuple):
    """What one reading says that two Revisions of a server have answered. None where it has read no new page of one, as
    where a Prometheus has scraped them at other moments."""

    new: ServedWindow | None
    """That which requests go over to."""
    old: ServedWindow | None
    """That which they came to."""

    @property
    def at(self) -> float:
        """Unix seconds of its end."""
        return max(window.at for window in self if window is not None)


def added(windows: Sequence[ServedWindow]) -> ServedWindow | None:
    """Windows of one Revision, in their order, as one; None of none."""
    return reduce(ServedWindow.together, windows) if windows else None


def window_of(grown: Iterable[tuple[float, ServerCounts]], at: float, expected: int) -> ServedWindow | None:
    """The window of a Revision from its replicas: of each, the seconds between its readings and what came in them.
    None where none was read twice. Its length is their mean; a replica that was read over more or less of the time
    counts by its rate. expected: how many take requests."""
    read = list(grown)
    if not read:
        return None
    seconds = math.fsum(seconds for seconds, _ in read) / len(read)
    scaled = (counts if abs(own / seconds - 1) <= _JITTER else counts.scaled(seconds / own) for own, counts in read)
    return ServedWindow(at, seconds, reduce(ServerCounts.plus, scaled), len(read), len(read) >= expected)
