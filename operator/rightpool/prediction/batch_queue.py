"""The latency of a server that takes what waits as its next batch: a queue M/D^[1,B]/1 with service times by batch.

Requests arrive by a Poisson process. The server is never idle while one waits: it takes up to B of them as one batch,
first come, first served, without waiting for more. A batch of b takes s(b) = t0 + b/rate, so that with
S = s(B) and the fixed share f = t0/S it is S (f + (1 - f) b/B). Neuts (1967), "A general class of bulk queues with
Poisson input", Annals of Mathematical Statistics 38, has the Markov chain of the queue at the ends of services; Inoue
(2021), "Queueing analysis of GPU-based inference servers with dynamic batching", Performance Evaluation 147,
arXiv:1912.06322, has service times that are linear in the batch, and finds them in GPUs. Here the stationary
distribution of that chain is computed, and from it the distribution of the time from arrival to answer.

All is in units of S, so that it depends on B, on f and on the utilisation alone: requests a second · S/B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from rightpool.api.value_object import value_object
from rightpool.prediction.columns import Bools, Floats, Ints, cumulative_normal

SATURATED: Final = 0.98
"""Utilisation from which on no latency is promised: queues are long there, and what a rate is off by decides."""

# A batch is divided into so many cells at most. Larger ones count in cells of several requests, whose number is normal.
_CELLS: Final = 64
# The queue beyond a batch, as a number of times that it falls by e: fewer than one service in 100,000 finds more. At
# least so many cells.
_FALLS: Final = 12.0
_BEYOND: Final = 8
# Of the distribution of latency, in units of S.
_GRID: Final = 1 / 256
_LEAST: Final = 1e-10

_UTILISATIONS: Final = np.concatenate([[0.0], 1.0 - np.exp(-np.linspace(0.02, -math.log(1.0 - SATURATED), 21))])
# Between those, linear: latency is convex, so it is never below what it is.
_FINE: Final = np.unique(np.concatenate([np.linspace(0.0, SATURATED, 393), _UTILISATIONS]))


@value_object
class LatencyCurve:
    """A quantile of latency by utilisation, for servers of several fixed shares. It never falls."""

    utilisation: Floats
    """From 0 to SATURATED."""
    latency: Floats
    """In units of S; a row for each fixed share, a column for each utilisation."""

    def busiest(self, limit: Floats) -> Floats:
        """The highest w with w · latency(w) ≤ limit, and never more than SATURATED.

        limit: for each question, requests a second · seconds / B. A row for each fixed share, a column for each
        question. A server of `rate` that gets `requests` holds `seconds` where requests / rate is at most that.
        """
        return np.stack([np.interp(limit, self.utilisation * row, self.utilisation) for row in self.latency])


@dataclass(frozen=True)
class BatchQueue:
    """Servers with batches of the same size, one for each fixed share."""

    batch: int
    """The largest batch, B."""
    fixed: tuple[float, ...]
    """Fixed shares, each 0-1."""

    def curve(self, quantile: float) -> LatencyCurve:
        """The quantile of latency (0-1) by utilisation. At 0 a request is alone: it takes s(1)."""
        rows = []
        for fixed, distributions in zip(self.fixed, self._distributions, strict=True):
            alone = fixed + (1.0 - fixed) / self.batch
            found = [alone, *(_quantile(shares, quantile) for shares in distributions)]
            # Rounding to the grid must not make a busier server a faster one.
            rows.append(np.interp(_FINE, _UTILISATIONS, np.maximum.accumulate(found)))
        return LatencyCurve(_FINE, np.array(rows))

    @cached_property
    def _distributions(self) -> list[list[Floats]]:
        cells = min(self.batch, _CELLS)
        per_cell = self.batch / cells
        return [
            [_latencies(cells, per_cell, fixed, busy) for busy in _UTILISATIONS[1:].tolist()] for fixed in self.fixed
        ]


def _latencies(cells: int, per_cell: float, fixed: float, utilisation: float) -> Floats:
    """P(latency ≤ x) for x on the grid. cells: in a batch; per_cell: requests in each."""
    # In heavy traffic a queue falls off as exp(-2 (1 - u)/u · requests): Kingman's approximation for Poisson arrivals.
    beyond = _BEYOND + math.ceil(
        0.5 * _FALLS * utilisation / (1.0 - utilisation) / per_cell + 4.0 * math.sqrt(cells / per_cell)
    )
    queue = np.arange(1, cells + beyond + 1)  # at the start of a service
    service = fixed + (1.0 - fixed) * np.arange(cells + 1) / cells  # by cells of the batch
    arrivals = _arrivals(utilisation * cells * service, len(queue), per_cell)
    taken = np.minimum(queue, cells)
    stationary = _stationary(arrivals, taken, queue)
    # Requests that come while a batch is served, by what was left then and how many came.
    start, came = np.nonzero(stationary[:, np.newaxis] * arrivals[taken] * np.arange(arrivals.shape[1]) > _LEAST)
    batch, left = taken[start], queue[start] - taken[start]
    weight = stationary[start] * arrivals[batch, came] * came
    waits = _Mixture()
    later = 0
    everyone: Bools = np.ones(len(came), dtype=np.bool_)
    while everyone.any():
        # Of those that came, first come, first served, the part that is in the batch after `later` full ones.
        first = np.clip((later * cells - left) / came, 0.0, 1.0)
        last = np.clip(((later + 1) * cells - left) / came, 0.0, 1.0)
        behind = left + came - later * cells + (later * utilisation * cells)
        own = np.interp(np.minimum(behind, cells), np.arange(cells + 1), service)
        rest, fixed_part = service[batch], later * service[cells] + own
        waits.add(fixed_part + rest * (1.0 - last), fixed_part + rest * (1.0 - first), weight * (last - first))
        everyone = last < 1.0
        batch, left, came = batch[everyone], left[everyone], came[everyone]
        weight = weight[everyone]
        later += 1
    # One that comes to an idle server is served alone.
    idle = float((stationary * arrivals[taken, 0])[queue <= cells].sum())
    alone = np.array([service[1]])
    waits.add(alone, alone, np.array([idle]))
    return waits.cumulative()


def _arrivals(means: Floats, most: int, per_cell: float) -> Floats:
    """P(k cells come) in services in which so many come on average; a row for each mean. The last column: or more."""
    numbers = np.arange(most)
    if per_cell == 1.0:
        factorials = np.cumsum(np.log(np.maximum(numbers, 1)))
        found = np.exp(numbers * np.log(means[:, np.newaxis]) - means[:, np.newaxis] - factorials)
    else:
        # Normal, with the variance of a Poisson number of requests; shared between the two cells next to it.
        sd = np.sqrt(means / per_cell)[:, np.newaxis]
        excess = _normal_excess(means[:, np.newaxis], sd, np.arange(-1, most + 1))
        found = excess[:, :-2] - 2.0 * excess[:, 1:-1] + excess[:, 2:]
        found[:, 0] += 1.0 - found.sum(axis=1)  # what is below 0
    found[:, -1] += np.maximum(0.0, 1.0 - found.sum(axis=1))
    possible: Floats = np.maximum(found, 0.0)
    return possible


def _normal_excess(mean: Floats, sd: Floats, above: Ints) -> Floats:
    """E max(X - above, 0) of a normal X."""
    z = (mean - above) / sd
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    excess: Floats = sd * density + (mean - above) * cumulative_normal(z.ravel()).reshape(z.shape)
    return excess


def _stationary(arrivals: Floats, taken: Ints, queue: Ints) -> Floats:
    """Shares of services by the queue at their start. An idle server starts when one request has come."""
    states, last = len(queue), arrivals.shape[1] - 1
    came = np.arange(states)[np.newaxis, :] + 1 - (queue - taken)[:, np.newaxis]  # to be at state column + 1
    moves = np.where(came >= 0, arrivals[taken[:, np.newaxis], np.clip(came, 0, last)], 0.0)
    moves[:, 0] += np.where(queue <= taken, arrivals[taken, 0], 0.0)  # idle, and then one
    moves[:, -1] += np.maximum(0.0, 1.0 - moves.sum(axis=1))
    system = moves.T - np.eye(states)
    system[-1] = 1.0
    found = np.linalg.solve(system, np.concatenate([np.zeros(states - 1), [1.0]]))
    return np.maximum(found, 0.0)


class _Mixture:
    """Uniform distributions with weights, added up on the grid."""

    def __init__(self) -> None:
        self._parts: list[tuple[Floats, Floats, Floats]] = []

    def add(self, low: Floats, high: Floats, weight: Floats) -> None:
        """Narrower ones than a step of the grid get as wide as that."""
        self._parts.append((low, np.maximum(high, low + _GRID), weight))

    def cumulative(self) -> Floats:
        """P(X ≤ x) at each step of the grid: the slopes of all ramps, summed twice."""
        low, high, weight = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        size = int(high.max() / _GRID) + 3
        slope = weight / (high - low)
        bends = np.zeros(size)
        for ends, change in ((low / _GRID, slope), (high / _GRID, -slope)):
            whole = np.floor(ends).astype(np.int64)
            part = ends - whole
            bends += np.bincount(whole, change * (1.0 - part), size) + np.bincount(whole + 1, change * part, size)
        shares: Floats = np.cumsum(np.cumsum(bends)) * (_GRID / weight.sum())
        return shares


def _quantile(cumulative: Floats, quantile: float) -> float:
    """The x at which P(X ≤ x) reaches the quantile; on the upper side, as the sum belongs to the next step."""
    return float(np.searchsorted(cumulative, quantile) + 1) * _GRID
