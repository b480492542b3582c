"""Shares: by which numbers of endpoints requests go over from one side of a server to the other.

A Service sends every endpoint as many requests as any other. So there are never fewer than either side has alone: no
endpoint gets more than it was planned for, on the faster chips or on the slower ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

WANTED: Final = (0.05, 0.25, 0.50, 0.75, 0.90, 1.0)
"""Shares of the new side, one after the other, as near as numbers of endpoints come without exceeding them."""


class Share(NamedTuple):
    """How many endpoints each side has."""

    new: int
    """Of the Revision that requests go over to."""
    old: int
    """Of the Revision that they came to."""

    @property
    def part(self) -> float:
        """Of the requests that the new side gets."""
        return self.new / (self.new + self.old)


def shares(new: int, old: int) -> tuple[Share, ...]:
    """From the first endpoint of the new side, of so many replicas, to the last one of the old side. The last step has
    all of the new and none of the old."""
    most = max(new, old)
    rising = [Share(count, old) for count in range(max(most - old, 1), new + 1)]
    falling = [Share(new, count) for count in range(old - 1, max(most - new, 1) - 1, -1)]
    way = [*rising, *falling, Share(new, 0)]
    taken: list[Share] = []
    for wanted in WANTED:
        up_to = [step for step in way if step.part <= wanted + 1e-9]
        step = up_to[-1] if up_to else way[0]
        if not taken or step.part > taken[-1].part:
            taken.append(step)
    return tuple(taken)
