"""The value of time: one score for every objective."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.wording import chips, dollars, gibibytes, number, share, span
from rightpool.planning.offers.scores import (
    payback,
    saving,
    saving_over,
    score,
    value_for_deadline,
    value_for_time,
)
from rightpool.prediction.columns import floats


@dataclass(frozen=True)
class Offer:
    """samples/s, dollars an hour, and whether the deadline holds there."""

    rate: float
    price: float
    in_time: bool = True


def cost(value: float, offer: Offer) -> float:
    """Its score."""
    return float(score(floats(value), floats(offer.price), floats(offer.rate)))


def deadline_value(offers: list[Offer]) -> float:
    """What an hour is worth for the deadline's sake."""
    rates, prices = floats([offer.rate for offer in offers]), floats([offer.price for offer in offers])
    return value_for_deadline(rates, prices, np.array([offer.in_time for offer in offers]))


PRICE = st.floats(0.01, 500.0)
RATE = st.floats(0.1, 1e6)


@given(price=PRICE, rate=RATE)
def test_without_value_of_time_the_score_is_dollars_per_million(price: float, rate: float) -> None:
    assert cost(0.0, Offer(rate, price)) == pytest.approx(price / 3600 / rate * 1e6)


@given(offers=st.lists(st.builds(Offer, RATE, PRICE), min_size=1, max_size=8), now=PRICE)
def test_minimize_time_prefers_the_fastest(offers: list[Offer], now: float) -> None:
    value = float(value_for_time(floats(max(offer.price for offer in offers)), floats(now)))
    best = min(offers, key=lambda offer: cost(value, offer))
    assert best.rate >= max(offer.rate for offer in offers) * (1 - 2e-3)


@given(
    offers=st.lists(st.builds(Offer, st.floats(1.0, 100.0), st.floats(1.0, 100.0)), min_size=2, max_size=8),
    needed=st.floats(1.0, 100.0),
)
def test_the_value_of_a_deadline_is_the_least_that_meets_it(offers: list[Offer], needed: float) -> None:
    judged = [Offer(offer.rate, offer.price, offer.rate >= needed) for offer in offers]
    value = deadline_value(judged)
    in_time = [offer for offer in judged if offer.in_time]
    late = [offer for offer in judged if not offer.in_time]
    assert value >= 0.0
    if not in_time or not late:
        assert value == 0.0
        return

    def best(chosen: list[Offer], worth: float) -> float:
        return min(cost(worth, offer) for offer in chosen)

    assert best(in_time, value) <= best(late, value) * (1 + 1e-9)
    if value > 1e-6:
        assert best(in_time, value * 0.99) > best(late, value * 0.99) * (1 - 1e-9)


def test_balanced_pays_three_times_as_much_for_twice_the_speed() -> None:
    value = 1.0  # what the job costs now
    assert cost(value, Offer(2.0, 3.0)) == pytest.approx(cost(value, Offer(1.0, 1.0)))
    assert deadline_value([Offer(1.0, 1.0)]) == 0.0
    assert value_for_time(floats(0.0), floats(0.0)) > 0.0


def test_saving_is_a_share_and_free_work_can_not_be_saved() -> None:
    shares = saving(floats([3.0, 5.0, 5.0]), floats([4.0, 4.0, 0.0]))
    assert shares.tolist() == pytest.approx([0.25, -0.25, 0.0])


def test_payback() -> None:
    gain, paid = payback(*map(floats, (0.0, 8.0, 4.0, 0.5, 3600.0, 60.0)))
    assert float(gain) == pytest.approx(4.0)
    assert float(paid) == pytest.approx(4.0 / 60)
    gain, paid = payback(*map(floats, (0.0, 8.0, 4.0, 0.5, 30.0, 60.0)))
    assert gain < paid


def test_prices_that_do_not_last_save_less_over_the_horizon() -> None:
    def share(now: float, usually: float, lasts: float, other: float) -> float:
        return float(saving_over(*map(floats, (now, usually, lasts, other, 36_000.0, 0.10))))

    with np.errstate(divide="ignore"):
        assert share(0.25, 0.0, math.inf, math.inf) == 0.25, "they have never changed"
        assert share(0.25, 0.0, 3600.0, math.inf) == pytest.approx(0.025)
        assert share(0.25, 0.0, 3600.0, 3600.0) == pytest.approx(0.0125), "whichever changes first"
        assert share(0.25, 0.20, 3600.0, math.inf) == pytest.approx(0.205), "the better chip stays better"
        assert share(0.25, 0.09, 3600.0, math.inf) == pytest.approx(0.025), "nobody would move for that"
        assert share(0.25, -0.30, 3600.0, math.inf) == pytest.approx(0.025), "nobody has to stay for that"
        assert share(0.25, 0.0, 0.0, 3600.0) == 0.0


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (number(1180.4), "1180"),
        (number(0.21712), "0.217"),
        (dollars(8.048), "$8.05"),
        (dollars(0.001234), "$0.00123"),
        (dollars(0.4), "$0.4"),
        (share(0.364), "36%"),
        (share(0.0451), "4.5%"),
        (share(0.0), "0%"),
        (gibibytes(2**30 * 13.25), "13.2 GiB"),
        (span(45.0), "45 s"),
        (span(720.0), "12 min"),
        (span(12600.0), "3.5 h"),
        (span(181440.0), "2.1 days"),
        (chips(1), "1 chip"),
        (chips(8), "8 chips"),
    ],
)
def test_how_numbers_are_said(shown: str, text: str) -> None:
    assert shown == text
