"""A record of demand, put through a server: who is answered later than the limit, and how long 99 of 100 take.

A record has how many requests came in each window of some seconds. They are spread at random within it and shared at
random by the replicas. A replica takes what waits as its next batch, up to its largest, as soon as it is free. Where
windows are long beside the server's batches, each window is answered as a steady stream of its rate is, and what was
left over waits in the next ones; else every request is replayed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Bools, Floats, Ints, floats
from rightpool.prediction.server import Lines, LoadLine
from rightpool.profiles.demand import SLOT

STEADY: Final = 50.0
"""A window so many times as long as the longest batch that may be in time is answered as a steady stream is."""
WORST_HOURS: Final = 0.02
"""Share of a record's hours that are replayed in turn, the worst ones."""
EDGES: Final = np.geomspace(1.0, 1000.0, 100)
"""Of latencies, in units of the shortest one."""
UTILISATIONS: Final = 1.0 - np.exp(-np.linspace(0.03, -math.log(1.0 - 0.985), 24))
"""At which a steady stream is looked at; from the last one on the queue grows without end."""

_LEAST_HOURS: Final = 4  # of a short record
_BATCHES: Final = 300  # of a steady stream
_WARM: Final = 40  # of these are left out
_ARRIVALS: Final = 400_000  # of a steady stream, at most
_SEEDS: Final = 5  # replicas that are replayed request by request, at most
_LANES: Final = 128  # lines and replicas of an hour that are replayed so
_LEAD: Final = 20  # windows before an hour that is replayed
_APART: Final = 3600.0  # seconds between two of them
_BINS: Final = 400  # of a record's rates


@value_object
class Replayed:
    """What became of a record, a number for each of the lines that were replayed."""

    late: Floats
    """Share of requests answered later: a row for each line, a column for each limit."""
    worst_hour: Floats
    """The same in the hour that has the highest share."""

    def held(self, *quantiles: float) -> Bools:
        """Which lines keep all limits: the quantile (0-1) of each over the record, and no hour three times as late."""
        allowed = 1.0 - floats(quantiles)
        kept: Bools = (self.late <= allowed) & (self.worst_hour <= 3.0 * allowed)
        found: Bools = np.all(kept, axis=1)
        return found


@value_object
class Tail:
    """A quantile of latency; infinite where the queue grows without end."""

    whole: float
    """Seconds, of all requests."""
    worst_hour: float
    """Seconds, of those of the worst hour."""


# --- request by request ----------------------------------------------------------------------------------------------


@value_object
class _Batches:
    """Batches as they formed; a row for each step, a column for each line."""

    first: Ints
    """Index of the first request."""
    last: Ints
    """Index behind the last one."""
    ended: Floats
    """When it was answered."""


def _batches(
    arrivals: Floats, lines: Lines, largest: float, of: tuple[Ints, Ints], steps: int | None = None
) -> _Batches:
    """All requests at the server of each line. arrivals: sorted; of: those of each line, from which index to which;
    steps: ends after so many batches of each."""
    padded = np.append(arrivals, np.inf)
    first, end = of
    free = np.full(len(first), -np.inf)
    firsts: list[Ints] = []
    lasts: list[Ints] = []
    ends: list[Floats] = []
    cap = max(1, round(largest))
    while (first < end).any() and (steps is None or len(firsts) < steps):
        start = np.where(first < end, np.maximum(free, padded[first]), np.inf)
        last = np.minimum(np.searchsorted(arrivals, start, side="right"), np.minimum(first + cap, end))
        free = start + lines.fixed + lines.each * (last - first)
        firsts.append(first)
        lasts.append(last)
        ends.append(free)
        first = last
    shape = (len(firsts), len(of[0]))
    return _Batches(np.reshape(firsts, shape).astype(np.int64), np.reshape(lasts, shape), np.reshape(ends, shape))


def latencies(arrivals: Floats, line: LoadLine) -> Floats:
    """Seconds from arrival to answer of each request, at one replica whose line is right. arrivals: sorted."""
    one = Lines(floats([line.fixed]), floats([line.each]))
    found = _batches(arrivals, one, line.most, (np.zeros(1, np.int64), np.array([len(arrivals)])))
    waited: Floats = np.repeat(found.ended[:, 0], (found.last - found.first)[:, 0]) - arrivals
    return waited


def spread(counts: Floats, replicas: Floats, seed: int, window: float = SLOT) -> Floats:
    """When the requests of one replica come: those of a window are spread at random, and each goes to any replica."""
    draw = np.random.default_rng(seed)
    whole = np.nan_to_num(counts)
    mine = draw.binomial(np.round(whole).astype(np.int64), 1.0 / np.maximum(replicas, 1.0))
    start = np.repeat(np.arange(len(counts)) * window, mine)
    arrivals: Floats = np.sort(start + window * draw.random(len(start)))
    return arrivals


# --- steady streams --------------------------------------------------------------------------------------------------


@value_object
class BatchLines:
    """What its batches take."""

    lines: Lines
    """Equally likely seconds."""
    largest: float
    """Requests of a full one."""


@value_object
class Replica:
    """A replica that is known but for some doubt: what records are put through, again and again."""

    capacity: Floats
    """Requests a second at most, of each line."""
    limits: Floats
    """Seconds: of times that are asked about. Infinite where the time does not count what waits."""
    later: Floats
    """Share of a steady stream that is answered later: by line, utilisation and limit."""
    batches: BatchLines | None = None
    """Of a server that takes batches, whose requests can be replayed one by one."""

    @classmethod
    def of(cls, lines: Lines, largest: float, limits: Floats) -> Replica:
        """Puts steady streams of all utilisations through it."""
        largest = max(1.0, float(round(largest)))
        capacity = largest / (lines.fixed + lines.each * largest)
        return cls(capacity, limits, _streams(lines, largest, limits), BatchLines(lines, largest))

    def replay(self, counts: Floats, replicas: Floats, window: float = SLOT) -> Replayed:
        """A record of counts by window, with so many replicas in each. Unknown windows (NaN) are left out."""
        weight = np.nan_to_num(counts)
        rate = weight / window / np.maximum(replicas, 1.0)
        hour = (np.arange(len(counts)) * window // HOUR).astype(np.int64)
        worst = _worst_hours(rate, hour)
        # Of most hours what steady streams of such rates do; of the worst ones in turn, with what is left over.
        top = max(float(rate.max(initial=0.0)), 1e-9)
        bins = np.minimum((rate / top * _BINS).astype(np.int64), _BINS - 1)
        others = ~np.isin(hour, worst)
        shares = self._steady((np.arange(_BINS) + 0.5) / _BINS * top)
        later = np.einsum("lbe,b->le", shares, np.bincount(bins[others], weight[others], _BINS))
        total = max(float(weight.sum()), 1e-9)
        usual = total / max(len(np.unique(hour[np.isfinite(counts)])), 1)
        hourly = np.zeros_like(later)
        windows = [np.flatnonzero(hour == one) for one in worst.tolist()]
        if self.batches is not None and self._slow(self.batches, window):
            found = self._one_by_one(self.batches, weight, replicas, windows, window)
        else:
            found = [np.einsum("lwe,w->le", self._with_backlog(rate[mine], window), weight[mine]) for mine in windows]
        for mine, those in zip(windows, found, strict=True):
            later += those
            # An hour of hardly any requests counts as one with some.
            hourly = np.maximum(hourly, those / max(float(weight[mine].sum()), 0.1 * usual, 1e-9))
        return Replayed(later / total, hourly)

    def _slow(self, batches: BatchLines, window: float) -> bool:
        """Whether its queue outlasts a window, by the longest batch that can be in time."""
        full = float(np.median(batches.largest / self.capacity))
        return min(full, 0.5 * float(self.limits[-1])) * STEADY > window

    def _steady(self, rate: Floats) -> Floats:
        """Shares later than each limit, by line, rate and limit."""
        busy = rate / self.capacity[:, np.newaxis]
        # Between two utilisations by a line; below the least as at that, from the highest on all.
        above = np.clip(np.searchsorted(UTILISATIONS, busy), 1, len(UTILISATIONS) - 1)
        low, high = UTILISATIONS[above - 1], UTILISATIONS[above]
        part = np.clip((busy - low) / (high - low), 0.0, 1.0)[:, :, np.newaxis]
        line = np.arange(len(self.later))[:, np.newaxis]
        found = (1.0 - part) * self.later[line, above - 1] + part * self.later[line, above]
        found[busy >= 1.0] = 1.0
        return found

    def _with_backlog(self, rate: Floats, window: float) -> Floats:
        """The same of windows one after another: what came above capacity waits, and those behind it wait for that."""
        capacity = self.capacity[:, np.newaxis]
        grown = np.cumsum((rate - capacity) * window, axis=1)
        left = grown - np.minimum(np.minimum.accumulate(grown, axis=1), 0.0)  # at the end of each window
        before = np.concatenate([np.zeros((len(capacity), 1)), left[:, :-1]], axis=1)
        found = self._steady(rate)
        waits = ((before > 0.0) | (left > 0.0)).any(axis=0)
        if waits.any():
            # The wait goes from one to the other in a line; the share of the window in which it is above the limit.
            one, other = (at[:, waits, np.newaxis] / capacity[:, :, np.newaxis] for at in (before, left))
            least, most = np.minimum(one, other), np.maximum(one, other)
            above = np.clip((most - self.limits) / np.maximum(most - least, 1e-9), 0.0, 1.0)
            calm = np.where(most > 0.0, np.where(found[:, waits] >= 1.0, 0.0, found[:, waits]), found[:, waits])
            # A time that does not count the wait is as it is with all places taken.
            full = np.isinf(self.limits) & (most > 0.0)
            found[:, waits] = np.where(full, self.later[:, np.newaxis, -1], np.maximum(calm, above))
        return found

    def _one_by_one(
        self, batches: BatchLines, counts: Floats, replicas: Floats, hours: Sequence[Ints], window: float
    ) -> list[Floats]:
        """Requests of each hour later than each limit, by line: a few replicas stand for all, which are alike."""
        count = len(self.later)
        seeds = max(1, min(_SEEDS, _LANES // count))
        stretches, counted, bounds, began = [], [], [0], 0.0
        for number, mine in enumerate(hours):
            lead = min(int(mine[0]), _LEAD)
            those = slice(int(mine[0]) - lead, int(mine[-1]) + 1)
            for seed in range(seeds):
                came = spread(counts[those], replicas[those], seeds * number + seed, window)
                stretches.append(began + came)
                counted.append(came >= lead * window)
                bounds.append(bounds[-1] + len(came))
                began += (len(mine) + lead) * window + _APART
        arrivals, before = np.concatenate(stretches), np.concatenate([[0], np.cumsum(np.concatenate(counted))])
        lanes = len(stretches)
        lines = Lines(np.repeat(batches.lines.fixed, lanes), np.repeat(batches.lines.each, lanes))
        of = np.tile(bounds[:-1], count), np.tile(bounds[1:], count)
        found = _batches(arrivals, lines, batches.largest, of)
        later = np.empty((count, lanes, len(self.limits)))
        for column, limit in enumerate(self.limits.tolist()):
            due = np.clip(np.searchsorted(arrivals, found.ended - limit, side="left"), found.first, found.last)
            later[:, :, column] = (before[due] - before[found.first]).sum(axis=0).reshape(count, lanes)
        came_in = np.diff(before[np.array(bounds)]).reshape(len(hours), seeds).sum(axis=1)
        shares = later.reshape(count, len(hours), seeds, -1).sum(axis=2) / np.maximum(came_in, 1)[:, np.newaxis]
        return [shares[:, number] * float(counts[mine].sum()) for number, mine in enumerate(hours)]


def _streams(lines: Lines, largest: float, limits: Floats) -> Floats:
    """Shares later than each limit: by line, utilisation and limit. Every stream has the same arrivals, in its time."""
    capacity = largest / (lines.fixed + lines.each * largest)
    rate = (capacity[:, np.newaxis] * UTILISATIONS).ravel()
    scaled = Lines(np.repeat(lines.fixed, len(UTILISATIONS)) * rate, np.repeat(lines.each, len(UTILISATIONS)) * rate)
    arrivals = _poisson()
    all_of_them = np.zeros(len(rate), np.int64), np.full(len(rate), len(arrivals))
    found = _batches(arrivals, scaled, largest, all_of_them, _BATCHES)
    first, last, ended = found.first[_WARM:], found.last[_WARM:], found.ended[_WARM:]
    requests = np.maximum((last - first).sum(axis=0), 1)
    shares = np.empty((len(rate), len(limits)))
    for column, limit in enumerate(limits.tolist()):
        due = np.searchsorted(arrivals, ended - limit * rate, side="left")
        shares[:, column] = (np.clip(due, first, last) - first).sum(axis=0) / requests
    by_line = shares.reshape(len(capacity), len(UTILISATIONS), len(limits))
    # A busier replica is never a faster one.
    risen: Floats = np.maximum.accumulate(by_line, axis=1)
    return risen


@cache
def _poisson() -> Floats:
    """Arrivals of one a second."""
    return np.cumsum(np.random.default_rng(0).exponential(1.0, _ARRIVALS))


def _worst_hours(rate: Floats, hour: Ints) -> Ints:
    """Those whose busiest minute is the busiest, as many as count."""
    if not len(rate):
        return hour
    minute = np.convolve(rate, np.ones(4) / 4.0, mode="same")
    peaks = np.zeros(int(hour[-1]) + 1)
    np.maximum.at(peaks, hour, minute)
    worst: Ints = np.argsort(peaks)[-max(_LEAST_HOURS, math.ceil(WORST_HOURS * len(peaks))) :]
    return worst


# --- what is asked ---------------------------------------------------------------------------------------------------


def tail(line: LoadLine, counts: Floats, replicas: Floats, quantile: float, window: float = SLOT) -> Tail:
    """Seconds within which the quantile of requests is answered, of a server whose line is right."""
    one = Lines(floats([line.fixed]), floats([line.each]))
    edges = line.seconds(1.0) * EDGES
    return tail_of(Replica.of(one, line.most, edges).replay(counts, replicas, window), edges, quantile)


def tail_of(found: Replayed, edges: Floats, quantile: float) -> Tail:
    """Seconds within which the quantile was, of what was replayed with one line and these limits, ascending."""
    return Tail(*(_edge(edges, shares[0], 1.0 - quantile) for shares in (found.late, found.worst_hour)))


def _edge(edges: Floats, later: Floats, share: float) -> float:
    """Where no more than the share is later: between two edges by a line of logs."""
    falls = np.minimum.accumulate(later)
    above = int(np.searchsorted(-falls, -share, side="left"))
    if above >= len(edges):
        return math.inf
    if above == 0 or falls[above] >= falls[above - 1]:
        return float(edges[above])
    part = (falls[above - 1] - share) / (falls[above - 1] - falls[above])
    return float(edges[above - 1] * (edges[above] / edges[above - 1]) ** part)
