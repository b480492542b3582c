"""An exact simulation of a batched server, request by request."""

from __future__ import annotations

import numpy as np

from rightpool.prediction.batch_queue import LatencyCurve
from rightpool.prediction.columns import Floats
from rightpool.prediction.serving import MEDIAN_LATENCY, TAIL_LATENCY, Server

BATCHES = (1, 8, 64, 1024)
FIXED = (0.02, 0.1, 0.4)
UTILISATIONS = (0.2, 0.5, 0.7, 0.8, 0.9, 0.95)


def latencies(batch: int, fixed: float, utilisation: float, requests: int, seed: int) -> Floats:
    """Of each request in units of a full batch's time; the first tenth, which the empty start favours, is left out."""
    gaps = np.random.default_rng(seed).exponential(1.0 / (utilisation * batch), requests)
    arrival = np.cumsum(gaps)
    found = np.empty(requests)
    first, free = 0, 0.0
    while first < requests:
        start = max(free, float(arrival[first]))
        behind = arrival[first : first + batch]
        taken = max(1, int(np.searchsorted(behind, start, side="right")))
        free = start + fixed + (1.0 - fixed) * taken / batch
        found[first : first + taken] = free - behind[:taken]
        first += taken
    return found[requests // 10 :]


def errors(requests: int) -> list[tuple[float, Floats, Floats]]:
    """For each utilisation predicted/simulated - 1, of the median and of the 99th percentile, for all servers."""
    lines = []
    servers = {batch: Server.of(batch, FIXED) for batch in BATCHES}
    for utilisation in UTILISATIONS:
        half, tail = [], []
        for batch, server in servers.items():
            for row, fixed in enumerate(FIXED):
                # As many batches for large ones: what comes in one batch waits alike.
                seen = latencies(batch, fixed, utilisation, requests * min(batch, 4), 1)
                half.append(_at(server.half, row, utilisation) / np.quantile(seen, MEDIAN_LATENCY) - 1.0)
                tail.append(_at(server.tail, row, utilisation) / np.quantile(seen, TAIL_LATENCY) - 1.0)
        lines.append((utilisation, np.array(half), np.array(tail)))
    return lines


def _at(curve: LatencyCurve, row: int, utilisation: float) -> float:
    return float(np.interp(utilisation, curve.utilisation, curve.latency[row]))
