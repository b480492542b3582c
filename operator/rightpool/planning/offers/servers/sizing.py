"""Replicas that hold a limit of latency over the recorded week, and dollars for each million of its requests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.latency import Percentile
from rightpool.api.status import PlaceSize
from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.planning.jobs.sizing import SHORTEST, SURE_TO_HOLD, Servable
from rightpool.planning.jobs.time_limits import Limits
from rightpool.planning.offers.rejection import RuledOut
from rightpool.planning.offers.servers.floor import usual_peaks
from rightpool.planning.offers.servers.refusal import CacheShort, LatencyNotHeld, LoadExtrapolated, TooSlowAlone
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.cost import MILLION
from rightpool.prediction.replay import EDGES, Replica, tail, tail_of
from rightpool.prediction.server import Lines, LoadLine
from rightpool.prediction.tokens import ServerLine, TokenLines
from rightpool.profiles.demand import SLOT
from rightpool.profiles.served import RequestTime

HARDLY: Final = 0.1
"""Probability with which the most that may be servable is."""
EXTRAPOLATED: Final = 1.5
"""Times the highest load of a replica that was seen: beyond it nothing is promised."""

MOST_SPARE: Final = 4.0
"""Longer batches are not looked for."""

_HALVINGS: Final = 10


@value_object
class LatencyTarget:
    """What is wanted of a server."""

    limit: float
    """Seconds: of a request, or of the next token. Infinite where nothing is asked of these."""
    quantile: float
    """Share of them that must be within it, 0-1."""
    headroom: float = 1.0
    """Times the record that must fit."""
    least: int = 1
    """Replicas, at least."""
    most: int = 1_000
    """Replicas, at most."""
    first: Percentile | None = None
    """Of first tokens; None where nothing is asked of these."""
    time: RequestTime = RequestTime.WHOLE
    """Which time has the limit."""

    @classmethod
    def of(cls, limits: Limits, least: int = 1, most: int = 1_000) -> LatencyTarget:
        """Of the times that have one."""
        one = limits.get(RequestTime.WHOLE) or limits.get(RequestTime.BETWEEN_TOKENS)
        limit, quantile = (math.inf, 1.0) if one is None else (one.seconds, one.share)
        time = RequestTime.WHOLE if RequestTime.WHOLE in limits else RequestTime.BETWEEN_TOKENS
        return cls(limit, quantile, 1.0, least, most, limits.get(RequestTime.FIRST_TOKEN), time)

    @property
    def strictest(self) -> float:
        """Seconds: one limit, to be named."""
        return self.first.seconds if math.isinf(self.limit) and self.first is not None else self.limit

    @property
    def tokens(self) -> tuple[Floats, Floats]:
        """Seconds that first and next tokens may take: one each, or none."""
        first = [] if self.first is None else [self.first.seconds]
        return floats(first), floats([] if math.isinf(self.limit) else [self.limit])

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Of each limit, that of first tokens before the other one."""
        first = () if self.first is None else (self.first.share,)
        return first if math.isinf(self.limit) else (*first, self.quantile)


def sized(
    pool: str, line: ServerLine, counts: Floats, target: LatencyTarget, *, measured: bool = True
) -> PlaceSize | None:
    """The fewest floor replicas that keep the limit over the record, surely enough; None where too little of it is
    known. counts: of each SLOT, or NaN."""
    known = np.isfinite(counts)
    recorded, requests = float(known.sum()) * SLOT, float(np.nansum(counts))
    if recorded < SHORTEST or requests <= 0.0:
        return None
    step = line.between if isinstance(line, TokenLines) else line
    doubt, held = step.sd(line.most), line.held if isinstance(line, TokenLines) else math.inf
    found = PlaceSize(pool, step.fixed, step.each, 0.0, 1.0, step.seen, doubt, spare=1.0, measured=measured)
    if math.isfinite(held):
        found = replace(found, held=held)
    if found.alone > target.limit or held < 1.0:
        return found
    able = servable(line, counts, target)
    if able.at_least <= 0.0:
        return replace(found, probability=able.chance)
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    highest = float(peaks.max())
    needed = max(math.ceil(highest / able.at_least), target.least)
    replicas = np.maximum(np.ceil(peaks / able.at_least), target.least)
    first, within = _tails(line, counts, replicas, target)
    made = line.tokens if isinstance(line, TokenLines) else 1.0
    return replace(
        found,
        servable=able.at_least,
        probability=float(_replica(line, target).replay(wanted, replicas).held(*target.quantiles).mean()),
        replicas=needed,
        load=mean_load(line, highest / needed),
        hours=float(replicas[known].sum()) * SLOT / HOUR / (made * requests / MILLION),
        spare=spare_time(line, counts, target, needed),
        within=within,
        first=first,
    )


def why_not_held(size: PlaceSize, target: LatencyTarget) -> RuledOut | None:
    """Why it is none; None where it holds."""
    if size.held is not None and size.held < 1.0:
        return CacheShort(size.pool, size.held)
    if size.alone > target.limit:
        return TooSlowAlone(size.alone, target.limit, target.time)
    if size.servable <= 0.0:
        return LatencyNotHeld(size.probability, target.strictest)
    if size.replicas > target.most:
        return LatencyNotHeld(size.probability, target.strictest, size.replicas, target.most)
    if 0.0 < size.seen * EXTRAPOLATED < size.load:
        return LoadExtrapolated(size.load, size.seen)
    return None


def servable(line: ServerLine, counts: Floats, target: LatencyTarget) -> Servable:
    """What a replica can take at the peak of a record, where the others of its time take as much. counts: of each SLOT,
    or NaN; not all of them are."""
    peaks = usual_peaks(counts)
    replica, highest = _replica(line, target), float(peaks.max())

    def share(rate: float) -> float:
        # Where one replica is too many for the peak, as many times more come as make it the right number.
        more = max(rate / highest, 1.0)
        found = replica.replay(counts * more, np.maximum(peaks * more / rate, 1e-9))
        return float(found.held(*target.quantiles).mean())

    least, most = 0.02 * line.capacity, line.capacity
    chance = share(least)
    if chance < SURE_TO_HOLD:
        return Servable(0.0, 0.0, chance)
    surely = _highest(share, SURE_TO_HOLD, least, most)
    return Servable(surely, _highest(share, HARDLY, surely, most), share(surely))


def spare_time(line: ServerLine, counts: Floats, target: LatencyTarget, replicas: int) -> float:
    """Times as long as the line says, with which so many replicas at the peak of the record still keep the limit; below
    1 where they do not as it is. counts: of each SLOT, or NaN."""
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    there = np.ceil(peaks * (replicas / max(float(peaks.max()), 1e-9)))
    low, high = -math.log(MOST_SPARE), math.log(MOST_SPARE)
    for _ in range(_HALVINGS - 2):
        middle = 0.5 * (low + high)
        found = _slowed(line, target, math.exp(middle)).replay(wanted, there)
        low, high = (middle, high) if found.held(*target.quantiles)[0] else (low, middle)
    return math.exp(low)


def _slowed(line: ServerLine, target: LatencyTarget, longer: float) -> Replica:
    """One that surely takes so many times as long as the line says."""
    if isinstance(line, TokenLines):
        return line.longer(longer).replica(line.tokens, *target.tokens)
    slow = Lines(floats([line.fixed * longer]), floats([line.each * longer]))
    return Replica.of(slow, line.most, floats([target.limit]))


def _tails(
    line: ServerLine, counts: Floats, replicas: Floats, target: LatencyTarget
) -> tuple[float | None, float | None]:
    """Seconds within which the share of first tokens comes that has a limit, and of requests or next tokens."""
    if isinstance(line, LoadLine):
        within = tail(line, counts, replicas, target.quantile).whole
        return None, within if math.isfinite(within) else None
    times, none = line.longer(), floats([])
    found: list[float | None] = []
    first, between = times.first[0, 0] * EDGES, times.between[0, 0] * EDGES
    for share, limits in (
        (target.first.share if target.first is not None else None, (first, none)),
        (None if math.isinf(target.limit) else target.quantile, (none, between)),
    ):
        edges = limits[0] if len(limits[0]) else limits[1]
        replayed = None if share is None else times.replica(line.tokens, *limits).replay(counts, replicas)
        within = math.inf if replayed is None or share is None else tail_of(replayed, edges, share).whole
        found.append(within if math.isfinite(within) else None)
    return found[0], found[1]


def _replica(line: ServerLine, target: LatencyTarget) -> Replica:
    if isinstance(line, TokenLines):
        return line.likely().replica(line.tokens, *target.tokens)
    limit = target.limit
    # A request waits for one batch and is answered with the next: longer ones than half the limit do not matter.
    longest = min(max((0.5 * limit - line.fixed) / line.each, 1.0), line.most)
    return Replica.of(line.draws(longest), line.most, floats([limit]))


def _highest(share: Callable[[float], float], sure: float, least: float, most: float) -> float:
    """The most requests a second whose share is as high, where that of `least` is."""
    low, high = math.log(least), math.log(most)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(math.exp(middle)) >= sure else (low, middle)
    return math.exp(low)


def mean_load(line: ServerLine, rate: float) -> float:
    """Requests of a batch at a steady rate: as many as come while one is answered, and at least one. Of tokens those
    that share a step: itself, and as many as come while one is answered."""
    if isinstance(line, TokenLines):
        step, tokens = line.between, rate * line.tokens
        busy = tokens * step.each
        return line.most if busy >= 1.0 else min(1.0 + tokens * step.fixed / (1.0 - busy), line.most)
    busy = rate * line.each
    if busy >= 1.0:
        return line.most
    return min(max(rate * line.fixed / (1.0 - busy), 1.0), line.most)
