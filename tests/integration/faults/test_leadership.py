"""The leadership that a campaign sees is what the Lease says, by the time of each renewal's arrival."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos.components import Components
from tests.chaos.context import SETTLE_SECONDS, FaultContext
from tests.chaos.environment import Environment
from tests.chaos.invariants import Checker
from tests.chaos.leadership import Leadership
from tests.chaos.operators import LEASE_SECONDS, ProcessPool, Replica
from tests.chaos.prometheus_proxy import PrometheusProxy


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


def campaign(folder: Path, *, led: float, ran: float = 60.0, wrote: float = float("inf"), frozen: bool = False) -> bool:
    """Whether an operator can act that leads for so long, runs undisturbed for so long, and where the last status was
    written so many seconds ago."""
    now = time.monotonic()
    leadership, checker = Leadership(), Checker()
    for number in range(100):  # more often than the Lease lasts
        leadership.observe(lease("a-1", number), now - led * (1.0 - number / 99.0))
    checker.written_at = now - wrote
    missing: Any = None
    context = FaultContext(
        cast(Environment, missing),
        Components(folder, []),
        cast(ProcessPool, missing),
        cast(PrometheusProxy, missing),
        leadership,
        checker,
        [],
        random.Random(0),
        {"a": Replica("a-1", 0, folder, None, frozen, since=now - ran)},
    )
    return context.can_act


def test_a_leader_that_has_written_can_act_at_once(tmp_path: Path) -> None:
    assert campaign(tmp_path, led=2.0, wrote=1.0)


def test_a_leader_that_has_written_nothing_could_have_after_a_while(tmp_path: Path) -> None:
    assert not campaign(tmp_path, led=SETTLE_SECONDS / 2)
    assert not campaign(tmp_path, led=SETTLE_SECONDS / 2, wrote=SETTLE_SECONDS), "its predecessor's"
    assert campaign(tmp_path, led=SETTLE_SECONDS + 2.0)


def test_a_leader_that_was_disturbed_begins_anew(tmp_path: Path) -> None:
    assert not campaign(tmp_path, led=60.0, ran=1.0, wrote=2.0)
    assert not campaign(tmp_path, led=60.0, ran=-5.0, wrote=2.0), "a start that is known to take longer"
    assert not campaign(tmp_path, led=60.0, wrote=2.0, frozen=True)
