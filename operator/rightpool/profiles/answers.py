"""What a server answers now: the requests of its last minutes, in the few numbers that people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.profiles.latency import Between
from rightpool.profiles.sample import Quality
from rightpool.profiles.served import RequestCounter, RequestTime, ServedWindow, added

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
    """Of all requests, or of all tokens where it is the time between two: between two numbers where the server's
    histogram has no edge at the limit."""
    below: float | None
    """The edge below the limit, or at it; None where there is none."""
    above: float | None
    """The edge above the limit, or at it; None where there is none."""
    time: RequestTime = RequestTime.WHOLE
    """Which time has this limit."""


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
    lates: tuple[Late, ...] = ()
    """Those beyond each limit that is asked for and of which a distribution tells."""
    tokens_per_second: float | None = None
    """That all replicas together make."""
    first_token: Between | None = None
    """Seconds within which 99% of the requests had their first token."""
    between_tokens: Between | None = None
    """Seconds within which 99% of the other tokens came after the one before."""

    def late(self, time: RequestTime = RequestTime.WHOLE) -> Late | None:
        """What took too long by this time; None where it has no limit, or no distribution tells."""
        return next((late for late in self.lates if late.time is time), None)

    def same_as(self, before: Answers) -> bool:
        """Whether it says the same as an earlier one, within the tolerance."""
        return (
            self._plain == before._plain
            and _same(self.requests_per_second, before.requests_per_second)
            and _same(self.error_ratio, before.error_ratio)
            and _same(self.mean_seconds, before.mean_seconds)
            and _same(self.tokens_per_second, before.tokens_per_second)
            and all(map(_as_late, self.lates, before.lates))
        )

    @property
    def _plain(self) -> tuple[object, ...]:
        times = self.p99, self.first_token, self.between_tokens
        return self.revision, times, self.quality, self.problem, len(self.lates)


def answers_of(
    revision: int, windows: Sequence[ServedWindow], limits: Mapping[RequestTime, float] = MappingProxyType({})
) -> Answers | None:
    """From windows in their order; None while no window covers all replicas. A window that does not is left out.
    limits: seconds that each of these times may take."""
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
        lates=tuple(late for time, limit in limits.items() if (late := _late(whole, limit, time)) is not None),
        tokens_per_second=whole.rate(RequestCounter.TOKENS_OUT),
        first_token=whole.quantile(_QUANTILE, RequestTime.FIRST_TOKEN),
        between_tokens=whole.quantile(_QUANTILE, RequestTime.BETWEEN_TOKENS),
    )


def _late(whole: ServedWindow, limit: float, time: RequestTime) -> Late | None:
    counted, share = whole.counts.times.get(time), whole.late(limit, time)
    return None if counted is None or share is None else Late(limit, share, *counted.edges_around(limit), time)


def _as_late(now: Late, before: Late) -> bool:
    edges = (now.time, now.limit, now.below, now.above) == (before.time, before.limit, before.below, before.above)
    return edges and _same(now.share.low, before.share.low) and _same(now.share.high, before.share.high)


def _same(now: float | None, before: float | None) -> bool:
    if now is None or before is None:
        return now is before
    return abs(now - before) <= SAME_ANSWER * abs(before)
