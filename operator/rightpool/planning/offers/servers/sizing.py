"""Replicas that hold a limit of latency over the recorded week, and dollars for each million of its requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
from rightpool.planning.jobs.sizing import SURE_TO_HOLD, Servable
from rightpool.planning.offers.rejection import RuledOut
from rightpool.planning.offers.servers.floor import usual_peaks
from rightpool.planning.offers.servers.refusal import (
    DemandUnknown,
    LatencyNotHeld,
    LoadExtrapolated,
    TooSlowAlone,
)
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.cost import MILLION
from rightpool.prediction.replay import Replica
from rightpool.prediction.server import LoadLine
from rightpool.profiles.demand import SLOT

HARDLY: Final = 0.1
"""Probability with which the most that may be servable is."""
EXTRAPOLATED: Final = 1.5
"""Times the highest load of a replica that was seen: beyond it nothing is promised."""
SHORTEST: Final = HOUR
"""Seconds of demand without which nothing is sized."""

_HALVINGS: Final = 10


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """One shape of a replica in one pool."""

    pool: str
    """Name of the AcceleratorPool."""
    price: float
    """Dollars an hour of a replica."""
    line: LoadLine
    """Seconds of its batches."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Sized:
    """What an offer would be over the record."""

    offer: ServerOffer
    """Which."""
    refusal: RuledOut | None
    """Why it is none; None where it holds."""
    servable: float = 0.0
    """Requests a second of a replica at the peak, with the limit kept as surely as it must be."""
    replicas: int = 0
    """At the peak of the record."""
    chance: float = 0.0
    """Probability that the limit is kept with them."""
    dollars: float = math.inf
    """For each million requests of the record."""


def sized(offer: ServerOffer, counts: Floats, target: LatencyTarget) -> Sized:
    """The fewest floor replicas that keep the limit over the record, surely enough. counts: of each SLOT, or NaN."""
    known = np.isfinite(counts)
    recorded, requests = float(known.sum()) * SLOT, float(np.nansum(counts))
    if recorded < SHORTEST or requests <= 0.0:
        return Sized(offer, DemandUnknown(recorded))
    alone = offer.line.seconds(1.0)
    if alone > target.limit:
        return Sized(offer, TooSlowAlone(alone, target.limit))
    able = servable(offer.line, counts, target)
    if able.at_least <= 0.0:
        return Sized(offer, LatencyNotHeld(able.chance, target.limit))
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    replica = _replica(offer.line, target.limit)
    replicas = np.clip(np.ceil(peaks / able.at_least), target.least, target.most)
    needed = math.ceil(float(peaks.max()) / able.at_least)
    if needed > target.most:
        return Sized(offer, LatencyNotHeld(0.0, target.limit, needed, target.most), able.at_least, needed)
    load = mean_load(offer.line, float(peaks.max()) / max(needed, target.least))
    if 0.0 < offer.line.seen * EXTRAPOLATED < load:
        return Sized(offer, LoadExtrapolated(load, offer.line.seen), able.at_least, needed)
    return Sized(
        offer,
        None,
        able.at_least,
        int(replicas.max()),
        float(replica.replay(wanted, replicas).held(target.quantile).mean()),
        float((replicas[known] * offer.price).sum() * SLOT / HOUR / (requests / MILLION)),
    )


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


def cheapest(found: Sequence[Sized]) -> Sized | None:
    """The one that holds for the fewest dollars."""
    held = [one for one in found if one.refusal is None]
    return min(held, key=lambda one: one.dollars, default=None)


def mean_load(line: LoadLine, rate: float) -> float:
    """Requests of a batch at a steady rate: as many as come while one is answered, and at least one."""
    busy = rate * line.each
    if busy >= 1.0:
        return line.most
    return min(max(rate * line.fixed / (1.0 - busy), 1.0), line.most)
