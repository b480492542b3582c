"""The leadership that a campaign sees is what the Lease says, by the time of each renewal's arrival."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.leadership import Leadership
from tests.chaos.operators import LEASE_SECONDS


def lease(holder: str, renewal: int) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": str(renewal)}}


@pytest.fixture
def leadership() -> Leadership:
    made = Leadership()
    for second in range(10):
        made.observe(lease("a-1", second), 100.0 + second)
    return made


def test_a_leader_that_renews_leads_since_its_first_renewal(leadership: Leadership) -> None:
    assert leadership.seconds("a-1", 110.0) == 10.0
    assert leadership.seconds("b-1", 110.0) == 0.0


def test_another_holder_begins_anew(leadership: Leadership) -> None:
    leadership.observe(lease("b-1", 10), 110.0)
    assert leadership.seconds("b-1", 112.0) == 2.0
    assert leadership.seconds("a-1", 112.0) == 0.0


def test_a_lease_that_ran_out_is_led_by_nobody_and_begins_anew(leadership: Leadership) -> None:
    late = 109.0 + LEASE_SECONDS + 1.0
    assert leadership.seconds("a-1", late) == 0.0
    leadership.observe(lease("a-1", 11), late)
    assert leadership.seconds("a-1", late + 1.0) == 1.0


def test_a_state_seen_again_is_no_renewal(leadership: Leadership) -> None:
    leadership.observe(lease("a-1", 9), 112.0)
    assert leadership.seconds("a-1", 109.0 + LEASE_SECONDS + 0.5) == 0.0


def test_a_lease_given_back_or_deleted_is_led_by_nobody(leadership: Leadership) -> None:
    leadership.observe({}, 110.0)
    assert leadership.seconds("a-1", 110.0) == 0.0


def test_nothing_is_known_before_the_first_state() -> None:
    assert Leadership().seconds("a-1", 5.0) == 0.0
