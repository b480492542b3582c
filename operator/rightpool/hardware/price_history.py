"""Price history: how long prices of a pool last, and what is usual there.

A spot market has other prices every hour, a tariff every night, and a contract never. The present price says what the
next minutes cost. What the rest of a job costs depends on how long it lasts, and what came before is all that is known
of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median_low
from typing import Final

from rightpool.api.past_price import MAX_PRICES, PastPrice
from rightpool.api.placement import CapacityType
from rightpool.hardware.accelerator import Price

# What changes by less is the same price: half of what a move must save by default. Prices that creep count whenever
# they have come as far.
SAME_PRICE: Final = 0.05
# Seconds. A price that does not last for so long is a mistake in a pool's spec, or what another operator, with other
# values of its chart, says of the same pool. Where that happens again within a day, it is a market.
SHORTEST: Final = 300.0
_AGAIN: Final = 86_400.0
# A price that differs by this factor from all that the pool has had is taken for a mistake until it has stood for so
# many seconds.
JUMP: Final = 3.0
STOOD: Final = 7200.0


def with_price(history: Sequence[PastPrice], price: Price, now: float) -> tuple[PastPrice, ...]:
    """The history with the present price of both capacity types, if it is another one: in the place of the last one
    where that was a mistake. The oldest are dropped. now: Unix seconds.

    What was taken back leaves the same price twice. Where one was within a day, the last one stays until it has lasted
    for SHORTEST: then each counts.
    """
    present = PastPrice(now, price.on_demand, price.spot)
    if present.per_chip_hour is None and present.spot_per_chip_hour is None:
        return tuple(history)
    if history and _same(history[-1], present):
        return tuple(history)
    if len(history) > 1 and now - history[-1].since < SHORTEST:
        *kept, mistake = history
        if mistake.since <= now and _taken_back(history, now):
            return tuple(history)
        # Since then, so that one that changes every other minute is a price of some minutes, and not none.
        return (*kept, replace(present, since=min(mistake.since, now)))
    return (*history, present)[-MAX_PRICES:]


def suspected(history: Sequence[PastPrice], price: Price, now: float) -> PastPrice | None:
    """The last price before the present one, where that is taken for a mistake: it has jumped, and has not stood for
    long. None where it is believed. A price that the pool has had, or nearly, is believed at once. now: Unix seconds.
    """
    *past, present = with_price(history, price, now) or (PastPrice(now),)
    if not past or now - present.since >= STOOD or not all(_jumps(one, present) for one in past):
        return None
    return past[-1]


def _jumps(before: PastPrice, after: PastPrice) -> bool:
    pairs = (
        (before.per_chip_hour, after.per_chip_hour),
        (before.spot_per_chip_hour, after.spot_per_chip_hour),
    )
    return any(one and other is not None and not one / JUMP < other < one * JUMP for one, other in pairs)


def lasts(history: Sequence[PastPrice], capacity: CapacityType, price: Price, now: float) -> float:
    """Seconds for which the present price is likely to last; infinite where none was seen to come and to go.

    The median of how long those before have lasted, of two the shorter; or the time that it has lasted by now, if that
    is more. The first one that is known began at an unknown time: a catalog's price that the owner of a new pool
    corrects has lasted for years, not for minutes. price: the present one, which the history may not have yet.
    """
    prices = _prices(with_price(history, price, now), capacity, now)
    spells = [end - begin for (begin, _), (end, _) in pairwise(prices[1:])]
    if not spells:
        return math.inf
    begun, last = prices[-1]
    return max(median_low(spells), 0.0 if _differs(last, price.of(capacity)) else now - begun)


def usual_price(
    history: Sequence[PastPrice], capacity: CapacityType, price: Price, now: float
) -> tuple[float | None, float]:
    """Dollars for a chip-hour in the mean of the time that is known, and the standard deviation of its log: that of the
    prices, over the root of how many they were. The present price, surely, where it has never changed."""
    prices = _prices(with_price(history, price, now), capacity, now)
    known = now - prices[0][0] if prices else 0.0
    if len(prices) < 2 or known <= 0.0:
        return price.of(capacity), 0.0
    ends = [begin for begin, _ in prices[1:]] + [now]
    spells = [(dollars, (end - begin) / known) for (begin, dollars), end in zip(prices, ends, strict=True)]
    mean = sum(dollars * share for dollars, share in spells)
    if mean <= 0.0:
        return price.of(capacity), 0.0
    variance = sum(share * (dollars / mean - 1.0) ** 2 for dollars, share in spells)
    return mean, math.sqrt(variance / len(spells))


def _prices(history: Sequence[PastPrice], capacity: CapacityType, now: float) -> list[tuple[float, float]]:
    """When each price of a capacity type began, the present one last. Of the time without one nothing is known."""
    found: list[tuple[float, float]] = []
    for past in history:
        dollars = past.spot_per_chip_hour if capacity is CapacityType.SPOT else past.per_chip_hour
        if dollars is not None and past.since <= now and (not found or _differs(found[-1][1], dollars)):
            found.append((past.since, dollars))
    return found


def _taken_back(history: Sequence[PastPrice], now: float) -> bool:
    """Whether a price was, within a day."""
    return any(_same(one, two) and now - two.since < _AGAIN for one, two in pairwise(history))


def _same(one: PastPrice, two: PastPrice) -> bool:
    return not _differs(one.per_chip_hour, two.per_chip_hour) and not _differs(
        one.spot_per_chip_hour, two.spot_per_chip_hour
    )


def _differs(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(after - before) >= SAME_PRICE * max(before, after) and before != after
