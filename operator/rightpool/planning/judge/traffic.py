"""Traffic: whether a new side of a server may take more of it, by what two sides answered in the same minutes.

Requests of one block of some seconds are late together: a burst is one event and not a hundred. So many requests count
as so many fewer independent ones as their blocks vary more than chance alone would make them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from statistics import fmean, stdev
from typing import Final, NamedTuple

from rightpool.api.value_object import value_object

SURE_TO_FAIL: Final = 0.01
"""What chance does less often than this is called late, or failing."""
SURE_TO_HOLD: Final = 0.10
"""What a side that breaks the limit shows less often than this is called held."""
LIKELY: Final = 0.60
"""Probability with which what could not be shown in time is kept."""
WORST_HOUR: Final = 3.0
"""Times the share that may be late over a week, may be in an hour: where nothing beside it shows what the hour is
like."""
FAILING: Final = 0.001
"""Share of requests that may fail."""
FEWEST_BLOCKS: Final = 3
"""Fewer with requests show nothing: the first ones may be slow, and late ones are counted when they are answered."""
BLOCK_SD: Final = 0.05
"""How far the mean of a block's batches is off at least, as the standard deviation of a log."""
_SURE_Z: Final = 1.2816  # what a mean is surely above, or below: with 90%
_USUAL: Final = 0.01  # of requests may be late, where nobody says


class Answered(NamedTuple):
    """What one side answered in a block of time."""

    requests: float
    """All of them."""
    late: float
    """Certainly later than the limit."""
    doubtful: float
    """Later than the limit or not: what the edges of its histogram leave open. Beside `late`."""
    failed: float
    """Answered with an error of its own."""


class TrafficBlock(NamedTuple):
    """What both sides answered in the same seconds."""

    new: Answered
    """Which is judged."""
    old: Answered | None
    """Which it is compared with; None where that takes no requests any more."""


class BatchTimes(NamedTuple):
    """How long batches of the new side take, beside what was promised."""

    logs: Sequence[float]
    """Of seconds ÷ those promised at the same load, of each block that says so."""
    spare: float
    """Times as long as promised, with which the limit would just be kept at the peak."""

    @property
    def longer(self) -> float:
        """Times as long as promised, in the mean; NaN where no block says so."""
        return math.exp(self._mean)

    @property
    def too_long(self) -> bool:
        """Whether they surely take so long that the limit will not be kept at the peak, though none may be late now."""
        return self._mean - self._off > math.log(self.spare)

    @property
    def roomy(self) -> bool:
        """Whether they surely leave room at the peak: what shows that the limit is kept where no request tells."""
        return self._mean + self._off < math.log(self.spare)

    @property
    def fit(self) -> bool:
        """Whether they rather keep it at the peak than not, as far as is known."""
        return not self._mean > math.log(self.spare)

    @property
    def _mean(self) -> float:
        return fmean(self.logs) if self.logs else math.nan

    @property
    def _off(self) -> float:
        """How far the mean may be off. First blocks, while it warms up, differ from others, and so show nothing."""
        if len(self.logs) < FEWEST_BLOCKS:
            return math.inf
        return _SURE_Z * max(stdev(self.logs), BLOCK_SD) / math.sqrt(len(self.logs))


class TrafficVerdict(StrEnum):
    """What is known of the new side."""

    OPEN = "Open"  # more requests may say otherwise
    HELD = "Held"  # it keeps the limit, or no less of it than the old side
    LATE = "Late"  # too much of it is late, and more than of the old side
    SLOW = "Slow"  # its batches take so long that too much of it will be late at the peak
    FAILING = "Failing"  # too much of it fails, and more than of the old side

    @property
    def undoes(self) -> bool:
        """Whether the new side gets no more requests."""
        return self in (TrafficVerdict.LATE, TrafficVerdict.SLOW, TrafficVerdict.FAILING)


_SEVERITY: Final = (
    TrafficVerdict.FAILING,
    TrafficVerdict.LATE,
    TrafficVerdict.SLOW,
    TrafficVerdict.OPEN,
    TrafficVerdict.HELD,
)


@value_object
class TrafficComparison:
    """What blocks say."""

    verdict: TrafficVerdict
    """What follows."""
    requests: float
    """Of the new side."""
    late: float | None
    """Share of them that was later than the limit, or may have been; None where nothing tells how long they took."""
    old_late: float | None
    """The same of the old side; None where it had no requests."""
    failed: float
    """Share that failed."""
    likely: bool
    """Whether it is likelier than LIKELY to keep what is asked of it."""

    @property
    def severity(self) -> tuple[int, bool]:
        """The lowest of several limits decides: what undoes before what is open, and that before what is held."""
        return _SEVERITY.index(self.verdict), self.likely


def judge_traffic(
    blocks: Sequence[TrafficBlock], late: float | None, failing: float, batches: BatchTimes | None = None
) -> TrafficComparison:
    """late: share that may be later than the limit, 0-1; None without a limit. failing: share that may fail. batches:
    None where nothing was promised of them; where no distribution says how late requests are, they say it."""
    olds = [block.old for block in blocks if block.old is not None]
    new, old = _all([block.new for block in blocks]), _all(olds)
    bad = new.late + new.doubtful
    seen = sum(block.new.requests > 0.0 for block in blocks) >= FEWEST_BLOCKS
    old_share = (old.late + old.doubtful) / old.requests if old.requests else None
    timed = any(block.new.doubtful < block.new.requests for block in blocks)

    def found(verdict: TrafficVerdict, *, likely: bool = True) -> TrafficComparison:
        many = max(new.requests, 1.0)
        share = bad / many if timed else None
        return TrafficComparison(verdict, new.requests, share, old_share, new.failed / many, likely)

    if _surely_more(new.failed, new.requests, failing, old.failed, old.requests):
        return found(TrafficVerdict.FAILING, likely=False)
    # As many as show a limit of 1% of which none is late.
    enough = seen and new.requests >= math.log(SURE_TO_HOLD) / math.log1p(-_USUAL)
    fit = batches is None or batches.fit
    if late is None and batches is not None and batches.too_long:
        return found(TrafficVerdict.SLOW, likely=False)
    if late is None:
        return found(TrafficVerdict.HELD if enough and fit else TrafficVerdict.OPEN, likely=fit)
    clumps = max(_clump([(one.requests, one.late) for one in side]) for side in ([block.new for block in blocks], olds))
    most = late if old.requests else WORST_HOUR * late
    if _surely_more(new.late / clumps, new.requests / clumps, most, old.late / clumps, old.requests / clumps):
        return found(TrafficVerdict.LATE, likely=False)
    if batches is not None and batches.too_long:
        return found(TrafficVerdict.SLOW, likely=False)
    if not timed:
        held = enough and batches is not None and batches.roomy
        return found(TrafficVerdict.HELD if held else TrafficVerdict.OPEN, likely=fit)
    clump = _clump([(block.new.requests, block.new.late + block.new.doubtful) for block in blocks])
    if seen and fit and at_most(bad / clump, new.requests / clump, late) < SURE_TO_HOLD:
        return found(TrafficVerdict.HELD)
    rare = at_least(bad / clump, new.requests / clump, max(late, old_share or 0.0))
    return found(TrafficVerdict.OPEN, likely=fit and rare > 1.0 - LIKELY)


def at_least(count: float, of: float, share: float) -> float:
    """Probability that chance brings so many or more, where each of `of` is one with probability `share`."""
    least, whole = math.floor(count + 1e-9), math.floor(of + 1e-9)
    return 1.0 if least <= 0 else max(1.0 - _binomial_sum(least - 1, whole, share), 0.0)


def at_most(count: float, of: float, share: float) -> float:
    """Probability that chance brings so many or fewer."""
    return _binomial_sum(math.ceil(count - 1e-9), math.floor(of + 1e-9), share)


def more_often(count: float, of: float, others: float, of_others: float) -> float:
    """Fisher's exact test: probability that one side has so many or more of all there are, where both are alike."""
    one, other = math.floor(count + 1e-9), math.ceil(others - 1e-9)
    mine, theirs = max(math.floor(of + 1e-9), one), max(math.floor(of_others + 1e-9), other)
    both = one + other
    whole = _log_choose(mine + theirs, both)
    ways = (
        math.exp(_log_choose(mine, number) + _log_choose(theirs, both - number) - whole)
        for number in range(one, min(both, mine) + 1)
    )
    return min(math.fsum(ways), 1.0)


def _surely_more(count: float, of: float, share: float, others: float, of_others: float) -> bool:
    """More than the share that may be, and than of the others, if there are any."""
    if not count or at_least(count, of, share) >= SURE_TO_FAIL:
        return False
    return not of_others or more_often(count, of, others, of_others) < SURE_TO_FAIL


def _all(sides: Sequence[Answered]) -> Answered:
    columns = zip(*sides, strict=True) if sides else ((0.0,),) * 4
    return Answered(*(math.fsum(column) for column in columns))


def _clump(blocks: Sequence[tuple[float, float]]) -> float:
    """How many requests count as one: the variance between blocks ÷ that of independent requests, at least 1."""
    counted = [(requests, late) for requests, late in blocks if requests > 0.0]
    whole, bad = math.fsum(requests for requests, _ in counted), math.fsum(late for _, late in counted)
    share = bad / whole if whole else 0.0
    if len(counted) < 2 or not 0.0 < share < 1.0:
        return 1.0
    squares = math.fsum(
        (late - requests * share) ** 2 / (requests * share * (1.0 - share)) for requests, late in counted
    )
    return max(squares / (len(counted) - 1), 1.0)


def _binomial_sum(most: int, whole: int, share: float) -> float:
    """Probability of at most so many."""
    if most >= whole or share <= 0.0:
        return 1.0
    if share >= 1.0:
        return 0.0
    one, none = math.log(share), math.log1p(-share)
    return min(
        math.fsum(
            math.exp(_log_choose(whole, number) + number * one + (whole - number) * none) for number in range(most + 1)
        ),
        1.0,
    )


def _log_choose(whole: int, number: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(number + 1) - math.lgamma(whole - number + 1)
