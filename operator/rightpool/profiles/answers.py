"""What a server answers now: the requests of its last minutes, in the few numbers that people read."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.profiles.latency import Between
from rightpool.profiles.sample import Quality
from rightpool.profiles.served import RequestTime, ServedWindow, added

LONGEST_SECONDS: Final = 300.0
"""The windows of so long are one answer."""
SAME_ANSWER: Final = 0.1
"""Rates that differ by less are the same, relative: demand varies all the time."""
_QUANTILE: Final = 0.99


class PageProblem(StrEnum):
    """Why nothing is known of a replica. The value is the reason of Profiled."""

    UNREACHABLE = "MetricsUnreachable"  # no answer, or none that is a page
    UNREADABLE = "MetricsUnreadable"  # a page with a line that no exposition has
    NO_DIALECT = "DialectUnknown"  # none of the known servers has such a page
    OTHER_DIALECT = "DialectDiffers"  # another server than the spec names
    STARTED_ANEW = "CountersReset"  # a counter fell


@value_object
class Late:
    """The requests that took longer than a limit."""

    limit: float
    """Seconds."""
    share: Between
    """Of all requests: between two numbers where the server's histogram has no edge at the limit."""
    below: float | None
    """The edge below the limit, or at it; None where there is none."""
    above: float | None
    """The edge above the limit, or at it; None where there is none."""


@value_object
class Answers:
    """What is not measured is None."""

    revision: int
    """Which one answers."""
    requests_per_second: float | None = None
    """Of all replicas together."""
    error_ratio: float | None = None
    """Failed requests ÷ requests."""
    p99: Between | None = None
    """Seconds within which 99% of the requests were answered: between two edges of the server's histogram."""
    mean_seconds: float | None = None
    """Of a request, whole."""
    quality: Quality | None = None
    """Of the number of requests."""
    problem: PageProblem | None = None
    """Why nothing is known of the requests."""
    late: Late | None = None
    """Those beyond the limit that is asked for; None where none is, or no distribution tells."""

    def same_as(self, before: Answers) -> bool:
        """Whether it says the same as an earlier one, within the tolerance."""
        plain = (self.revision, self.p99, self.quality, self.problem)
        return (
            plain == (before.revision, before.p99, before.quality, before.problem)
            and _same(self.requests_per_second, before.requests_per_second)
            and _same(self.error_ratio, before.error_ratio)
            and _same(self.mean_seconds, before.mean_seconds)
            and _as_late(self.late, before.late)
        )


def answers_of(revision: int, windows: Sequence[ServedWindow], limit: float | None = None) -> Answers | None:
    """From windows in their order; None while no window covers all replicas. A window that does not is left out.
    limit: seconds that requests may take."""
    whole = added([window for window in windows if window.complete])
    if whole is None:
        return None
    return Answers(
        revision,
        whole.requests_per_second,
        whole.error_ratio,
        whole.quantile(_QUANTILE),
        whole.mean_seconds,
        whole.quality,
        late=None if limit is None else _late(whole, limit),
    )


def _late(whole: ServedWindow, limit: float) -> Late | None:
    counted, share = whole.counts.times.get(RequestTime.WHOLE), whole.late(limit)
    return None if counted is None or share is None else Late(limit, share, *counted.edges_around(limit))


def _as_late(now: Late | None, before: Late | None) -> bool:
    if now is None or before is None:
        return now is before
    edges = (now.limit, now.below, now.above) == (before.limit, before.below, before.above)
    return edges and _same(now.share.low, before.share.low) and _same(now.share.high, before.share.high)


def _same(now: float | None, before: float | None) -> bool:
    if now is None or before is None:
        return now is before
    return abs(now - before) <= SAME_ANSWER * abs(before)
