"""Difference: how two series of windows compare, by what was measured and by what was promised.

A few windows of a program that varies much say less than a promise that is likely kept; see `promise`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rightpool.api.value_object import value_object
from rightpool.planning.judge.promise import Promise
from rightpool.planning.judge.series import FEWEST_WINDOWS, MOST_WINDOWS, RateSeries
from rightpool.planning.judge.silence import Silence, silence
from rightpool.profiles.silence import silent_windows, working
from rightpool.profiles.steadiness import variance_of_difference

if TYPE_CHECKING:
    from rightpool.profiles.step_change import StepChange

REFUTED: Final = 0.20
"""A promise that is broken with more than this probability is refuted, and what was measured counts alone."""
# The same the last time: hardly more than BROKEN, which it is before anything is measured. With BROKEN itself one right
# move in a hundred more is undone, for a neighbour that came with it; with 0.15 more wrong ones are kept.
REFUTED_LAST: Final = 0.12


@value_object
class Difference:
    """Of what a unit of work takes, after against before: time, or dollars, or both. All but doubts are logarithms, and
    above 0 where it takes more."""

    before: RateSeries
    """What it is compared with."""
    after: RateSeries
    """What is judged."""
    silence: Silence
    """Of `after`."""
    price: float | None
    """Of an hour, by how much it counts. None: unknown; then all below are of time alone."""
    by_means: float
    """As the means of both have it."""
    measured: float
    """As it was measured, also by which windows are next to one another."""
    sd: float
    """Standard deviation of `measured`."""
    freedom: float
    """Degrees of freedom of `sd`."""
    usual_sd: float
    """By how much two means of so many windows differ by themselves, whatever these windows are like."""
    usual_freedom: float
    """Degrees of freedom of `usual_sd`."""
    likely: float
    """By what was measured and what was promised, each by how sure it is."""
    weight: float
    """How much what was measured counts in `likely`, 0-1."""
    dollars: float | None
    """`likely` of dollars alone. None: a price is unknown."""
    last: bool
    """Whether there is no time for another window."""

    @property
    def even(self) -> float:
        """Units a second at which it takes as much as before."""
        return self.before.mean * math.exp(self.price or 0.0)


def compare(
    before: RateSeries,
    after: RateSeries,
    apart: float | None,
    promise: Promise | None = None,
    *,
    money: float = 0.0,
    last: bool = False,
) -> Difference:
    """By how much what a unit takes differs. `before` did something.

    apart: windows from the end of `before` to the first one of `after` that counts; None where not known. promise: of
    the rates. money: how much dollars count: 0 is time alone, 1 dollars alone, 0.5 their geometric mean. last: whether
    there is no time for another window.
    """
    quiet = silence(after.recent, after.seconds, before.mean, before.rates)
    last = last or (len(after.recent) >= MOST_WINDOWS and not quiet.mostly)
    by_means = math.log(after.mean / before.mean) if after.mean > 0.0 else -math.inf
    usual_sd, usual_freedom = _usual(before, after)
    step = _step(before, after, apart, quiet)
    rate, sd, freedom = (by_means, usual_sd, usual_freedom) if step is None else (step.log, step.sd, step.freedom)
    likely, weight = rate, 1.0
    if promise is not None and after.mean > 0.0:
        broken = promise.broken(rate, sd)
        if broken <= (REFUTED_LAST if last else REFUTED):
            weight = promise.weight(sd)
        likely = weight * rate + (1.0 - weight) * promise.log
    dearer = _dearer(before, after)
    price = _counted(before, dearer, money)
    return Difference(
        before=before,
        after=after,
        silence=quiet,
        price=price,
        by_means=(price or 0.0) - by_means,
        measured=(price or 0.0) - rate,
        sd=sd,
        freedom=freedom,
        usual_sd=usual_sd,
        usual_freedom=usual_freedom,
        likely=(price or 0.0) - likely,
        weight=weight,
        dollars=None if dearer is None else dearer - likely,
        last=last,
    )


def _usual(before: RateSeries, after: RateSeries) -> tuple[float, float]:
    """By how much their means differ by themselves: a standard deviation of the logarithm, and its degrees of freedom.
    See `doubt_of_ratio`."""
    one, freedom = variance_of_difference(before.variation, before.windows)
    other, more = variance_of_difference(after.variation, after.windows)
    return math.sqrt((one + other) / 2.0), min(freedom, more)


def _step(before: RateSeries, after: RateSeries, apart: float | None, quiet: Silence) -> StepChange | None:
    """The change by the windows on either side; None where those before are not known one by one, or windows count by
    their age."""
    if apart is None or after.closed or not before.rates or not after.rates:
        return None
    # Commands that read accounts do without NumPy.
    from rightpool.profiles.step_change import step_change

    early, late = before.rates, after.rates
    if silent_windows(late, before.mean) < quiet.longest:
        # How fast it is while it works. More silence than that is the place's doing.
        worked = working(early), working(late, before.mean)
        if min(map(len, worked)) >= FEWEST_WINDOWS:
            early, late = worked
    return step_change(early, late, max(apart, 0.0))


def _dearer(before: RateSeries, after: RateSeries) -> float | None:
    """Logarithm of the price of an hour, after ÷ before; None where one is unknown. Of what cost nothing, any price is
    infinitely more."""
    if before.price is None or after.price is None:
        return None
    if before.price > 0.0:
        return math.log(after.price) - math.log(before.price) if after.price > 0.0 else -math.inf
    return math.inf if after.price > 0.0 else 0.0


def _counted(before: RateSeries, dearer: float | None, money: float) -> float | None:
    """The same by how much dollars count. Nothing is a share of what cost nothing."""
    if money == 0.0:
        return 0.0
    return money * dearer if dearer is not None and before.price else None
