"""Spare: by how much longer than promised the batches of a server may take until its limit is not kept any more."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from rightpool.planning.offers.servers.floor import usual_peaks
from rightpool.planning.offers.servers.sizing import LatencyTarget
from rightpool.prediction.columns import Floats, floats
from rightpool.prediction.replay import Replica
from rightpool.prediction.server import Lines, LoadLine

MOST: Final = 4.0
"""More is not looked for."""
_HALVINGS: Final = 8


def spare_time(line: LoadLine, counts: Floats, target: LatencyTarget, replicas: int) -> float:
    """Times as long as the line says, with which so many replicas at the peak of the record still keep the limit; below
    1 where they do not as it is. counts: of each SLOT, or NaN."""
    wanted, peaks = counts * target.headroom, usual_peaks(counts) * target.headroom
    there = np.ceil(peaks * (replicas / max(float(peaks.max()), 1e-9)))
    low, high = -math.log(MOST), math.log(MOST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        longer = math.exp(middle)
        slow = Lines(floats([line.fixed * longer]), floats([line.each * longer]))
        found = Replica.of(slow, line.most, floats([target.limit])).replay(wanted, there)
        low, high = (middle, high) if found.held(target.quantile)[0] else (low, middle)
    return math.exp(low)
