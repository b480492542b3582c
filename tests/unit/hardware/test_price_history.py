"""What a pool has cost: kept while it changes, and what that says of how long a price lasts."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from rightpool.api.past_price import MAX_PRICES, PastPrice
from rightpool.api.placement import CapacityType
from rightpool.hardware.accelerator import Price
from rightpool.hardware.price_history import lasts, suspected, usual_price, with_price

NOW = 1_800_000_000.0
HOUR = 3600.0


def seen(*prices: float, every: float = HOUR) -> tuple[PastPrice, ...]:
    """These prices on demand, of so many seconds each; the last one began now."""
    count = len(prices)
    return tuple(PastPrice(NOW - (count - 1 - at) * every, price) for at, price in enumerate(prices))


def test_a_price_that_never_changed_is_certain() -> None:
    for history in ((), seen(3.0)):
        assert lasts(history, CapacityType.ON_DEMAND, Price(3.0), NOW + HOUR) == math.inf
        assert usual_price(history, CapacityType.ON_DEMAND, Price(3.0), NOW + HOUR) == (3.0, 0.0)
        assert lasts(history, CapacityType.SPOT, Price(), NOW) == math.inf
        assert usual_price(history, CapacityType.SPOT, Price(), NOW) == (None, 0.0)


def test_a_price_lasts_as_long_as_those_before_or_as_it_has_lasted() -> None:
    hourly = seen(3.0, 2.5, 3.2, 2.7)
    assert lasts(hourly, CapacityType.ON_DEMAND, Price(2.7), NOW + 60.0) == HOUR
    assert lasts(hourly, CapacityType.ON_DEMAND, Price(2.7), NOW + 5 * HOUR) == 5 * HOUR
    nights = [PastPrice(NOW - at * HOUR, dollars) for at, dollars in ((40, 3.0), (24, 2.0), (16, 3.0), (0, 2.0))]
    assert lasts(nights, CapacityType.ON_DEMAND, Price(2.0), NOW) == 8 * HOUR
    assert (
        lasts((*nights, PastPrice(NOW + 8 * HOUR, 3.0)), CapacityType.ON_DEMAND, Price(3.0), NOW + 8 * HOUR) == 8 * HOUR
    )
    # What came for an hour, and did not stay, does not stand for all that came before for long.
    short = (PastPrice(NOW - 9 * HOUR, 3.0), PastPrice(NOW, 2.25), PastPrice(NOW + HOUR, 3.0))
    assert lasts(short, CapacityType.ON_DEMAND, Price(3.0), NOW + 2 * HOUR) == HOUR
    assert lasts(short, CapacityType.ON_DEMAND, Price(3.0), NOW + 9 * HOUR) == 8 * HOUR


def test_the_first_price_has_lasted_for_longer_than_is_known() -> None:
    """The catalog's price of a new pool, until its owner writes the true one, is not a market."""
    corrected = (PastPrice(NOW, 3.43), PastPrice(NOW + 5.0, 5.07))
    for age in (5.0, 60.0, HOUR):
        assert lasts(corrected, CapacityType.ON_DEMAND, Price(5.07), NOW + age) == math.inf


def test_a_price_that_is_taken_back_within_minutes_was_none() -> None:
    wrong = (PastPrice(NOW - 9 * HOUR, 3.0, 1.0), PastPrice(NOW, 30.0, 1.0))
    later = NOW + 240.0
    assert with_price(wrong, Price(3.0, 1.0), later) == (wrong[0], PastPrice(NOW, 3.0, 1.0))
    assert lasts(wrong, CapacityType.ON_DEMAND, Price(3.0), later) == math.inf
    assert usual_price(wrong, CapacityType.ON_DEMAND, Price(3.0), later) == (3.0, 0.0)
    for other in (Price(2.0, 1.0), Price(3.0, 0.5)):
        assert with_price(wrong, other, later) == (wrong[0], PastPrice(NOW, other.on_demand, other.spot))
        assert len(with_price(wrong, other, NOW + 600.0)) == 3
    assert len(with_price(wrong, Price(3.0, 1.0), NOW + 600.0)) == 3
    assert lasts(wrong, CapacityType.ON_DEMAND, Price(3.0), NOW + 600.0) == 600.0


@pytest.mark.parametrize(("typed", "right"), [((30.0,), 2.0), ((0.2, 20.0), 2.0), ((30.0, 33.0, 0.3), 3.0)])
def test_mistakes_in_a_row_are_no_market(typed: tuple[float, ...], right: float) -> None:
    """Of who writes another price, or the same one again, and has it right a few minutes later."""
    history = (PastPrice(NOW - 9 * HOUR, 3.0),)
    for number, wrong in enumerate(typed):
        history = with_price(history, Price(wrong), NOW + 60.0 * number)
    now = NOW + 60.0 * len(typed)
    assert lasts(history, CapacityType.ON_DEMAND, Price(right), now) == math.inf, "it is not written yet"
    assert usual_price(history, CapacityType.ON_DEMAND, Price(right), now) == usual_price(
        with_price(history, Price(right), now), CapacityType.ON_DEMAND, Price(right), now
    )
    history = with_price(history, Price(right), now)
    assert history == (PastPrice(NOW - 9 * HOUR, 3.0), PastPrice(NOW, right))
    assert lasts(history, CapacityType.ON_DEMAND, Price(right), now + HOUR) == math.inf


def test_a_price_that_changes_every_other_minute_is_a_market() -> None:
    history: tuple[PastPrice, ...] = ()
    for number in range(60):
        history = with_price(history, Price(2.0 + 0.5 * (number % 4)), NOW + 120.0 * number)
    assert 300.0 <= lasts(history, CapacityType.ON_DEMAND, Price(3.5), NOW + 7200.0) <= 600.0


@pytest.mark.parametrize(
    ("low", "high"), [(10.0, 10.0), (120.0, 120.0), (240.0, 240.0), (7200.0, 240.0), (240.0, 900.0), (60.0, 7200.0)]
)
def test_a_price_that_is_taken_back_again_and_again_is_a_market(low: float, high: float) -> None:
    """As where two owners write one pool in turn, or a price falls for some minutes every two hours."""
    history: tuple[PastPrice, ...] = (PastPrice(NOW - 9 * HOUR, 3.0),)
    turn, day = low + high, 24 * HOUR
    known = 2 * turn + 600.0
    for cycle in range(int(day / 10.0)):
        since = 10.0 * cycle
        price = Price(2.0 if since % turn < low else 3.0)
        history = with_price(history, price, NOW + since)
        assert all(after.since - before.since >= 300.0 for before, after in pairwise(history))
        if since > known:
            assert lasts(history, CapacityType.ON_DEMAND, price, NOW + since) <= known
    mean = usual_price(history, CapacityType.ON_DEMAND, Price(3.0), NOW + day)[0]
    assert mean is not None and 2.0 < mean < 3.0


@pytest.mark.parametrize("every", [5.0, 8.0, 9.7, 10.0, 97.0])
def test_what_two_owners_write_in_turn_is_written_every_five_minutes(every: float) -> None:
    history: tuple[PastPrice, ...] = (PastPrice(NOW - 9 * HOUR, 2.0),)
    writes = 0
    for cycle in range(int(12 * HOUR / every)):
        before, history = history, with_price(history, Price(2.0 + cycle % 2), NOW + every * cycle)
        writes += history != before
    assert writes <= 12 * (HOUR / 300.0 + 2), "what was taken back is dropped once an hour, and found again"


def test_a_market_goes_on_after_a_clock_that_was_ahead() -> None:
    ahead = tuple(PastPrice(NOW + at, dollars) for at, dollars in ((-HOUR, 3.0), (0.0, 3.0), (HOUR, 2.0)))
    assert with_price(ahead, Price(3.0), NOW + 600.0)[-1] == PastPrice(NOW + 600.0, 3.0)


def test_a_price_that_is_not_in_the_history_yet_has_not_lasted() -> None:
    """After one was taken back the next one is written some minutes later."""
    prices = ((-90 * HOUR, 3.0), (-82 * HOUR, 2.0), (-74 * HOUR, 3.0), (0.0, 3.0))
    history = tuple(PastPrice(NOW + at, dollars) for at, dollars in prices)
    assert with_price(history, Price(2.0), NOW + 200.0) == history
    assert lasts(history, CapacityType.ON_DEMAND, Price(3.0), NOW + 200.0) == 74 * HOUR + 200.0
    assert lasts(history, CapacityType.ON_DEMAND, Price(2.0), NOW + 200.0) == 8 * HOUR


def test_a_mistake_of_the_day_before_makes_no_market() -> None:
    history: tuple[PastPrice, ...] = (PastPrice(NOW - 9 * HOUR, 3.0),)
    for day in range(MAX_PRICES + 2):
        at = NOW + 25 * day * HOUR
        history = with_price(with_price(history, Price(30.0), at), Price(3.0), at + 60.0)
        assert lasts(history, CapacityType.ON_DEMAND, Price(3.0), at + 60.0) == math.inf
    assert usual_price(history, CapacityType.ON_DEMAND, Price(3.0), at + HOUR) == (3.0, 0.0)


def test_a_clock_that_was_ahead_writes_no_price_of_the_future() -> None:
    ahead = (PastPrice(NOW - 9 * HOUR, 3.0), PastPrice(NOW + HOUR, 2.0))
    assert with_price(ahead, Price(2.5), NOW)[-1] == PastPrice(NOW, 2.5)


def test_a_change_that_is_not_written_yet_has_begun_now() -> None:
    assert lasts(seen(3.5, 3.0), CapacityType.ON_DEMAND, Price(2.0), NOW + HOUR) == HOUR
    assert usual_price(seen(3.0), CapacityType.ON_DEMAND, Price(2.0), NOW + HOUR)[0] == pytest.approx(3.0)


def test_what_changes_little_is_the_same_price() -> None:
    little = seen(3.00, 3.03, 2.98, 3.05)
    assert lasts(little, CapacityType.ON_DEMAND, Price(3.05), NOW) == math.inf
    history = with_price((), Price(3.00), NOW)
    for price in (3.03, 2.98, 3.05):
        assert with_price(history, Price(price), NOW + HOUR) == history
    # It creeps: as far as that it has come is a change.
    assert with_price(history, Price(3.20), NOW + HOUR) == (*history, PastPrice(NOW + HOUR, 3.20))


def test_usual_is_the_mean_of_the_time_that_is_known() -> None:
    history = (PastPrice(NOW - 9 * HOUR, 3.0), PastPrice(NOW, 2.0))
    mean, doubt = usual_price(history, CapacityType.ON_DEMAND, Price(2.0), NOW + 3 * HOUR)
    assert mean == pytest.approx((9 * 3.0 + 3 * 2.0) / 12)
    assert 0.0 < doubt < 0.2
    assert usual_price(seen(0.0, 0.0), CapacityType.ON_DEMAND, Price(0.0), NOW) == (0.0, 0.0)


def test_the_history_is_short_and_of_both_capacity_types() -> None:
    history: tuple[PastPrice, ...] = ()
    for hour in range(3 * MAX_PRICES):
        history = with_price(history, Price(3.0, 1.0 if hour % 2 else 1.2), NOW + hour * HOUR)
    now = NOW + 3 * MAX_PRICES * HOUR
    assert len(history) == MAX_PRICES
    assert all(after.since - before.since == HOUR for before, after in pairwise(history))
    assert lasts(history, CapacityType.ON_DEMAND, Price(3.0), now) == math.inf, "the other one has not changed"
    assert lasts(history, CapacityType.SPOT, Price(3.0, 1.0), now) == HOUR
    assert with_price(history, Price(), now) == history, "unknown is no price"


def test_it_survives_being_stored() -> None:
    kept = with_price((), Price(3.4299999, 1.1), NOW)
    read = tuple(PastPrice.from_dict(price.to_dict()) for price in kept)
    assert with_price(read, Price(3.4299999, 1.1), NOW + HOUR) == read


@pytest.mark.parametrize(
    ("dollars", "hours", "believed"), [(30.0, 1.0, 3.0), (0.3, 1.0, 3.0), (30.0, 2.1, 30.0), (6.0, 1.0, 6.0)]
)
def test_a_price_that_jumps_counts_once_it_has_stood(dollars: float, hours: float, believed: float) -> None:
    history = with_price(with_price((), Price(3.0), 0.0), Price(dollars), 90_000.0)
    before = suspected(history, Price(dollars), 90_000.0 + hours * 3600.0)
    assert (dollars if before is None else before.per_chip_hour) == believed


def test_a_price_that_is_corrected_counts_at_once() -> None:
    history = with_price(with_price((), Price(3.0), 0.0), Price(30.0), 90_000.0)
    assert suspected(with_price(history, Price(3.1), 99_000.0), Price(3.1), 99_000.0) is None
