"""Shares: by how many of its replicas requests go over to a new side of a server.

A Service sends every endpoint as many requests as any other, and the old side stays whole. So there are never fewer
than the new side is planned to have: no endpoint gets more than it is there for, on faster chips or on slower ones.
"""

from __future__ import annotations

from typing import Final

WANTED: Final = (0.05, 0.25, 0.50)
"""Shares of the new side, one after the other, as near as numbers of endpoints come without exceeding them."""


def first_share(new: int, old: int) -> int:
    """How many of `new` replicas get requests first, beside `old` ones."""
    least = max(new - old, 1)
    return max(least, *(_up_to(share, old) for share in WANTED[:1]))


def next_share(up: int, new: int, old: int) -> int | None:
    """How many after `up`; None where all have been."""
    if up >= new:
        return None
    return min(next((count for count in (_up_to(share, old) for share in WANTED) if count > up), new), new)


def _up_to(share: float, old: int) -> int:
    """As many as get no more than this share."""
    return int(share * old / (1.0 - share) + 1e-9)
