"""What requests a replica of a job can serve, and how long they wait: throughput, batch and queue together.

A replica is the job at one placement. Its rate is an Estimate: lognormal. How its step divides into a part that is the
same for every batch and one that grows with it is known within bounds only, and integrated over. Requests are shared
evenly and at random by the replicas, so each has Poisson arrivals; `batch_queue.py` has the latency of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.batch_queue import SATURATED, BatchQueue, LatencyCurve
from rightpool.prediction.columns import Bools, Floats, cumulative_normal
from rightpool.prediction.server import HALF, HALF_SD

SURE: Final = 0.9
"""Probability that the limit holds which the number of replicas is for: the upper end of the 80% interval."""
MEDIAN_LATENCY: Final = 0.5
TAIL_LATENCY: Final = 0.99

SERVED: Final = 0.96
"""What a program reaches that takes requests one by one, of its rate in full batches. Of MLPerf's systems half reach
more than 0.86 to 0.95, by benchmark, with what the limit of latency costs."""
SERVED_SD: Final = 0.1
"""Standard deviation of the log of that."""
# Standard normal quantiles of seven equally likely values.
_EQUALLY_LIKELY: Final = (-1.4652, -0.7916, -0.3661, 0.0, 0.3661, 0.7916, 1.4652)
_HALVINGS: Final = 48  # of logarithms: more than a reader sees


def fixed_shares(batch: int, least: float = 0.0, most: float = 1.0, half: float = HALF) -> tuple[float, ...]:
    """Equally likely shares of a step with a full batch that a step with any batch takes, 0-1.

    least: what is known not to grow with the batch, such as the wait for the host; most: 1 less what is known to grow,
    such as the time of matrix units. half: as HALF.
    """
    if batch == 1:
        return (1.0,)  # nothing is less than one request
    halves = [half * math.sqrt(batch) * math.exp(HALF_SD * z) for z in _EQUALLY_LIKELY]
    least, most = min(max(least, 0.0), 1.0), min(max(most, 0.0), 1.0)
    low, high = min(least, most), max(least, most)
    return tuple(sorted({min(max(half / (half + batch), low), high) for half in halves}))


def _one_by_one(rate: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """What is left of a rate in full batches for requests that come one by one."""
    return SERVED * rate, np.hypot(sd, SERVED_SD)


def _first(holds: Callable[[Floats], Bools], low: Floats, high: Floats) -> Floats:
    """Between the two, row by row, from where on it holds; `high` where it does not before."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        found = holds(middle)
        low, high = np.where(found, low, middle), np.where(found, middle, high)
    return high


@value_object
class Ends:
    """Medians with 80% intervals, a row for each server. Infinite where no such value is likely enough."""

    low: Floats
    """10th percentiles."""
    median: Floats
    """As likely to be exceeded as not."""
    high: Floats
    """90th percentiles."""


@value_object
class Served:
    """What servers do at the demand, a row for each."""

    capacity: Ends
    """Requests a second that one replica serves within the limit; 0 where one request by itself takes longer."""
    replicas: Floats
    """So many that the limit holds with probability SURE; infinite where no number does."""
    median_latency: Ends
    """Seconds from arrival to answer, half of requests; with that many replicas, or one where no number is enough."""
    tail_latency: Ends
    """The same for 99 of 100 requests."""
    probability: Floats
    """That 99 of 100 requests are answered within the limit."""
    alone: Ends
    """Seconds that one request by itself takes."""


@value_object
class Server:
    """A program that serves batches of up to `batch` requests."""

    batch: int
    """Requests of a full batch."""
    half: LatencyCurve
    """Median latency by utilisation."""
    tail: LatencyCurve
    """99th percentile of latency by utilisation."""

    @classmethod
    def of(cls, batch: int, fixed: tuple[float, ...]) -> Server:
        """Computes its curves: a third of a second. fixed: equally likely shares of a full step that any step takes."""
        queue = BatchQueue(batch, fixed)
        return cls(batch, queue.curve(MEDIAN_LATENCY), queue.curve(TAIL_LATENCY))

    def serve(self, rate: Floats, sd: Floats, requests: float, limit: float) -> Served:
        """All servers at one demand. rate, sd: medians of requests a second with full batches, and standard deviations
        of their logarithms. requests: a second, of all replicas together. limit: seconds for 99 of 100."""
        reached, doubt = _one_by_one(rate, sd)
        capacity = self._ends(lambda chance: self._capacity(reached, doubt, limit, 1.0 - chance))
        with np.errstate(divide="ignore"):
            replicas = np.ceil(requests / capacity.low)
        each = requests / np.where(np.isfinite(replicas), replicas, 1.0)
        half, tail = self.latencies(rate, sd, each)
        return Served(
            capacity=capacity,
            replicas=replicas,
            median_latency=half,
            tail_latency=tail,
            probability=self.probability(reached, doubt, each, np.full(len(rate), limit)),
            alone=self.latencies(rate, sd, 1e-9 * rate)[1],
        )

    def latencies(self, rate: Floats, sd: Floats, requests: Floats) -> tuple[Ends, Ends]:
        """Median and 99th percentile of latency, seconds, where each server gets `requests` a second."""
        rate, sd = _one_by_one(rate, sd)
        half = self._ends(lambda chance: self._latency(self.half, rate, sd, requests, chance))
        return half, self._ends(lambda chance: self._latency(self.tail, rate, sd, requests, chance))

    def probability(self, rate: Floats, sd: Floats, requests: Floats, limit: Floats) -> Floats:
        """That 99 of 100 requests are answered within `limit` seconds, where each server gets `requests` a second."""
        return self._probability(self.tail, rate, sd, requests, limit)

    def _probability(self, curve: LatencyCurve, rate: Floats, sd: Floats, requests: Floats, limit: Floats) -> Floats:
        busiest = curve.busiest(requests * limit / self.batch)
        with np.errstate(divide="ignore"):
            above = np.log(rate) - np.log(requests / busiest)  # of the least rate that is enough
        certain = sd <= 0.0
        z = above / np.where(certain, 1.0, sd)
        likely = cumulative_normal(z.ravel()).reshape(z.shape)
        chances: Floats = np.where(certain, above >= 0.0, likely).mean(axis=0)
        return chances

    def _latency(self, curve: LatencyCurve, rate: Floats, sd: Floats, requests: Floats, chance: float) -> Floats:
        """Seconds within which the curve's share of requests is answered, with that probability."""
        step, wide = self.batch / rate, np.exp(6.0 * sd)
        low, high = np.log(step / wide / self.batch / 2.0), np.log(step * wide / (1.0 - SATURATED) * 200.0)

        def enough(log: Floats) -> Bools:
            return self._probability(curve, rate, sd, requests, np.exp(log)) >= chance

        return np.where(enough(high), np.exp(_first(enough, low, high)), np.inf)

    def _capacity(self, rate: Floats, sd: Floats, limit: float, chance: float) -> Floats:
        """Requests a second that one replica serves within the limit, with that probability."""
        limits = np.full(len(rate), limit)
        most, least = np.log(rate) + 6.0 * sd + 0.1, np.log(rate) - 18.0

        def holds(log: Floats) -> Bools:
            return self.probability(rate, sd, np.exp(-log), limits) >= chance

        return np.where(holds(-least), np.exp(-_first(holds, -most, -least)), 0.0)

    @staticmethod
    def _ends(value: Callable[[float], Floats]) -> Ends:
        return Ends(value(1.0 - SURE), value(0.5), value(SURE))
