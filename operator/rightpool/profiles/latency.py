"""How long requests took, as servers tell it: counts at edges. Two questions are asked of them.

Which share of the requests was later than a limit: exact where an edge is the limit, else between what the edges around
it say. And between which edges a quantile lies. What cannot be told from the counts is an interval, or None, and never
a guess within a bucket.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from rightpool.api.value_object import value_object

_SAME: Final = 1e-9  # relative: edges that only their unit made different


class Between(NamedTuple):
    """What a number is at least and at most. Its middle says nothing."""

    low: float
    """At least."""
    high: float
    """At most; infinite where nothing bounds it."""

    @property
    def exact(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


@value_object
class Distribution:
    """How many of the requests took at most so long."""

    edges: tuple[float, ...]
    """Seconds, ascending and finite; of what is no time in its own unit."""
    counts: tuple[float, ...]
    """For each edge, the requests that took no longer. They never fall."""
    total: float
    """All requests, also those beyond the last edge."""
    sum: float | None = None
    """Seconds of all together; None where that is unknown."""

    @classmethod
    def of(cls, buckets: Iterable[tuple[float, float]], total: float | None = None) -> Distribution | None:
        """Of pairs of edge and cumulative count in any order, of which one edge is infinite or `total` is given. None
        where these are no counts of anything: an edge is there twice, a count falls, or all of them are unknown."""
        ordered = sorted(buckets)
        if ordered and ordered[-1][0] == math.inf:
            total = ordered.pop()[1]
        edges, counts = tuple(edge for edge, _ in ordered), tuple(count for _, count in ordered)
        rising = (0.0, *counts, math.inf if total is None else total)
        if total is None or not all(map(math.isfinite, (*edges, *rising))) or len({*edges}) < len(edges):
            return None
        if any(after < before for before, after in pairwise(rising)):
            return None
        return cls(edges, counts, total)

    @classmethod
    def of_none(cls) -> Distribution:
        """Of no requests, at edges that are not known yet."""
        return cls((), (), 0.0, 0.0)

    def later_than(self, limit: float) -> Between | None:
        """The share that took longer than the limit. None where there were no requests."""
        if self.total <= 0:
            return None
        below, above = self._around(limit)
        least = 0.0 if above is None else self.total - self.counts[above]
        most = self.total if below is None else self.total - self.counts[below]
        return Between(least / self.total, most / self.total)

    def edges_around(self, limit: float) -> tuple[float | None, float | None]:
        """The nearest edges, which are the same where one is the limit; None where there is none on that side."""
        below, above = self._around(limit)
        return None if below is None else self.edges[below], None if above is None else self.edges[above]

    def quantile(self, share: float) -> Between | None:
        """Where the fastest `share` of the requests ends. None where there were no requests."""
        if self.total <= 0:
            return None
        wanted = share * self.total
        for index, count in enumerate(self.counts):
            if count > 0 and count >= wanted:
                return Between(self.edges[index - 1] if index else 0.0, self.edges[index])
        return Between(self.edges[-1] if self.edges else 0.0, math.inf)

    def since(self, before: Distribution) -> Distribution | None:
        """What came since an earlier reading of the same counters. None where they were started anew, or have other
        edges now."""
        if before.total == 0:
            return self
        if self.edges != before.edges:
            return None
        grown = tuple(now - then for now, then in zip(self.counts, before.counts, strict=True))
        total = self.total - before.total
        if any(after < first for first, after in zip((0.0, *grown), (*grown, total), strict=True)):
            return None
        known = self.sum is not None and before.sum is not None
        return Distribution(self.edges, grown, total, max(self.sum - before.sum, 0.0) if known else None)  # type: ignore[operator]

    def plus(self, other: Distribution) -> Distribution:
        """Both together, at the edges that both have. That of no requests says nothing of edges."""
        if not (self.total and other.total):
            return self if self.total else other
        if self.edges == other.edges:
            edges, mine, others = self.edges, self.counts, other.counts
        else:
            theirs = dict(zip(other.edges, other.counts, strict=True))
            shared = [(edge, count) for edge, count in zip(self.edges, self.counts, strict=True) if edge in theirs]
            edges, mine = tuple(edge for edge, _ in shared), tuple(count for _, count in shared)
            others = tuple(theirs[edge] for edge in edges)
        counts = tuple(one + another for one, another in zip(mine, others, strict=True))
        added = None if self.sum is None or other.sum is None else self.sum + other.sum
        return Distribution(edges, counts, self.total + other.total, added)

    def scaled(self, factor: float) -> Distribution:
        """So many times as many requests, that took as long."""
        sum_of = None if self.sum is None else self.sum * factor
        return Distribution(self.edges, tuple(count * factor for count in self.counts), self.total * factor, sum_of)

    @property
    def mean(self) -> float | None:
        """Seconds of a request; None where that is unknown."""
        return self.sum / self.total if self.sum is not None and self.total > 0 else None

    def _around(self, limit: float) -> tuple[int | None, int | None]:
        below: int | None = None
        for index, edge in enumerate(self.edges):
            if math.isclose(edge, limit, rel_tol=_SAME):
                return index, index
            if edge > limit:
                return below, index
            below = index
        return below, None
