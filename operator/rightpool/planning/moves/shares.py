"""Shares: by which steps requests go over to a new side of a server.

A Service sends every endpoint as many requests as any other, and the old side stays whole. So more replicas of the new
side get a larger share, and each of them fewer requests: a slower chip than was promised keeps the limit so. An
HTTPRoute has weights, so that one replica can get any share, and so many are there as that share takes.
"""

from __future__ import annotations

import math
from typing import Final

WANTED: Final = (0.05, 0.25, 0.50)
"""Shares of the new side, one after the other, as near as numbers of endpoints come without exceeding them."""
SLOWEST: Final = 2.5
"""Times as long as promised that batches may take while the first replicas get requests, and still keep the limit at
the peak, as far as the new side has as many."""


def first_share(new: int, old: int, spare: float = SLOWEST) -> int:
    """How many of `new` replicas get requests first, beside `old` ones. spare: times as long as promised, with which
    `new` alone would just keep the limit at the peak; by default that is not asked for."""
    needed = math.ceil(new * max(SLOWEST / spare, 1.0) - 1e-9) - old  # never fewer than `new` in all
    return min(max(needed, _up_to(WANTED[0], old), 1), new)


def next_share(up: int, new: int, old: int) -> int | None:
    """How many after `up`; None where all have been."""
    if up >= new:
        return None
    return min(next((count for count in (_up_to(share, old) for share in WANTED) if count > up), new), new)


def next_percent(percent: int) -> int | None:
    """The share by weight after this one, in percent; None where all have been. 0: none has."""
    return next((later for later in (round(100.0 * share) for share in WANTED) if later > percent), None)


def up_for(percent: int, new: int, spare: float = SLOWEST) -> int:
    """How many of `new` replicas this share of the requests takes. spare: as of `first_share`."""
    return min(max(math.ceil(percent / 100.0 * new * max(SLOWEST / spare, 1.0) - 1e-9), 1), new)


def _up_to(share: float, old: int) -> int:
    """As many as get no more than this share."""
    return int(share * old / (1.0 - share) + 1e-9)
