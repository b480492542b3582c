"""Replicas that hold a limit of latency over the recorded week, and dollars for each million of its requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rightpool.api.units import HOUR
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

SURE_TO_HOLD: Final = 0.9
"""Probability with which the limit must be kept."""
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
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    # A request waits for one batch and is answered with the next: longer ones than half the limit do not matter.
    longest = min(max((0.5 * target.limit - offer.line.fixed) / offer.line.each, 1.0), offer.line.most)
    replica = Replica.of(offer.line.draws(longest), offer.line.most, floats([target.limit]))

    def surely(servable: float) -> float:
        return float(replica.replay(wanted, np.maximum(peaks / servable, 1e-9)).held(target.quantile).mean())

    capacity = offer.line.capacity
    low, high = math.log(0.02 * capacity), math.log(capacity)
    if surely(math.exp(low)) < SURE_TO_HOLD:
        return Sized(offer, LatencyNotHeld(surely(math.exp(low)), target.limit))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if surely(math.exp(middle)) >= SURE_TO_HOLD else (low, middle)
    servable = math.exp(low)
    replicas = np.clip(np.ceil(peaks / servable), target.least, target.most)
    needed = math.ceil(float(peaks.max()) / servable)
    if needed > target.most:
        return Sized(offer, LatencyNotHeld(0.0, target.limit, needed, target.most), servable, needed)
    load = mean_load(offer.line, float(peaks.max()) / max(needed, target.least))
    if 0.0 < offer.line.seen * EXTRAPOLATED < load:
        return Sized(offer, LoadExtrapolated(load, offer.line.seen), servable, needed)
    return Sized(
        offer,
        None,
        servable,
        int(replicas.max()),
        float(replica.replay(wanted, replicas).held(target.quantile).mean()),
        float((replicas[known] * offer.price).sum() * SLOT / HOUR / (requests / MILLION)),
    )


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
