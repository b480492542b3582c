"""Replicas that hold a limit of latency over the recorded week, and dollars for each million of its requests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from rightpool.api.status import PlaceSize
from rightpool.api.units import HOUR
from rightpool.api.value_object import value_object
from rightpool.planning.jobs.sizing import SHORTEST, SURE_TO_HOLD, Servable
from rightpool.planning.offers.rejection import RuledOut
from rightpool.planning.offers.servers.floor import usual_peaks
from rightpool.planning.offers.servers.refusal import LatencyNotHeld, LoadExtrapolated, TooSlowAlone
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.cost import MILLION
from rightpool.prediction.replay import Replica, tail
from rightpool.prediction.server import Lines, LoadLine
from rightpool.profiles.demand import SLOT

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
    """Seconds."""
    quantile: float
    """Share of requests that must be answered within them, 0-1."""
    headroom: float = 1.0
    """Times the record that must fit."""
    least: int = 1
    """Replicas, at least."""
    most: int = 1_000
    """Replicas, at most."""


def sized(
    pool: str, line: LoadLine, counts: Floats, target: LatencyTarget, *, measured: bool = True
) -> PlaceSize | None:
    """The fewest floor replicas that keep the limit over the record, surely enough; None where too little of it is
    known. counts: of each SLOT, or NaN."""
    known = np.isfinite(counts)
    recorded, requests = float(known.sum()) * SLOT, float(np.nansum(counts))
    if recorded < SHORTEST or requests <= 0.0:
        return None
    doubt = line.sd(line.most)
    found = PlaceSize(pool, line.fixed, line.each, 0.0, 1.0, line.seen, doubt, spare=1.0, measured=measured)
    if found.alone > target.limit:
        return found
    able = servable(line, counts, target)
    if able.at_least <= 0.0:
        return replace(found, probability=able.chance)
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    highest = float(peaks.max())
    needed = max(math.ceil(highest / able.at_least), target.least)
    replicas = np.maximum(np.ceil(peaks / able.at_least), target.least)
    whole = tail(line, counts, replicas, target.quantile).whole
    return replace(
        found,
        servable=able.at_least,
        probability=float(_replica(line, target.limit).replay(wanted, replicas).held(target.quantile).mean()),
        replicas=needed,
        load=mean_load(line, highest / needed),
        hours=float(replicas[known].sum()) * SLOT / HOUR / (requests / MILLION),
        spare=spare_time(line, counts, target, needed),
        within=whole if math.isfinite(whole) else None,
    )


def why_not_held(size: PlaceSize, target: LatencyTarget) -> RuledOut | None:
    """Why it is none; None where it holds."""
    if size.alone > target.limit:
        return TooSlowAlone(size.alone, target.limit)
    if size.servable <= 0.0:
        return LatencyNotHeld(size.probability, target.limit)
    if size.replicas > target.most:
        return LatencyNotHeld(size.probability, target.limit, size.replicas, target.most)
    if 0.0 < size.seen * EXTRAPOLATED < size.load:
        return LoadExtrapolated(size.load, size.seen)
    return None


def servable(line: LoadLine, counts: Floats, target: LatencyTarget) -> Servable:
    """What a replica can take at the peak of a record, where the others of its time take as much. counts: of each SLOT,
    or NaN; not all of them are."""
    peaks = usual_peaks(counts)
    replica, highest = _replica(line, target.limit), float(peaks.max())

    def share(rate: float) -> float:
        # Where one replica is too many for the peak, as many times more come as make it the right number.
        more = max(rate / highest, 1.0)
        return float(replica.replay(counts * more, np.maximum(peaks * more / rate, 1e-9)).held(target.quantile).mean())

    least, most = 0.02 * line.capacity, line.capacity
    chance = share(least)
    if chance < SURE_TO_HOLD:
        return Servable(0.0, 0.0, chance)
    surely = _highest(share, SURE_TO_HOLD, least, most)
    return Servable(surely, _highest(share, HARDLY, surely, most), share(surely))


def spare_time(line: LoadLine, counts: Floats, target: LatencyTarget, replicas: int) -> float:
    """Times as long as the line says, with which so many replicas at the peak of the record still keep the limit; below
    1 where they do not as it is. counts: of each SLOT, or NaN."""
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    there = np.ceil(peaks * (replicas / max(float(peaks.max()), 1e-9)))
    low, high = -math.log(MOST_SPARE), math.log(MOST_SPARE)
    for _ in range(_HALVINGS - 2):
        middle = 0.5 * (low + high)
        longer = math.exp(middle)
        slow = Lines(floats([line.fixed * longer]), floats([line.each * longer]))
        found = Replica.of(slow, line.most, floats([target.limit])).replay(wanted, there)
        low, high = (middle, high) if found.held(target.quantile)[0] else (low, middle)
    return math.exp(low)


def _replica(line: LoadLine, limit: float) -> Replica:
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


def mean_load(line: LoadLine, rate: float) -> float:
    """Requests of a batch at a steady rate: as many as come while one is answered, and at least one."""
    busy = rate * line.each
    if busy >= 1.0:
        return line.most
    return min(max(rate * line.fixed / (1.0 - busy), 1.0), line.most)
