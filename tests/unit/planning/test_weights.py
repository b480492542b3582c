"""A move of a server behind an HTTPRoute: shares are weights, so that one replica gets any of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import DirectTraffic, commands
from rightpool.planning.moves.shares import SLOWEST, next_percent, up_for
from rightpool.planning.moves.surge import LONGEST_UNREAD_SECONDS
from rightpool.planning.work.registry import work_of
from rightpool.planning.work.server import HELD_WINDOWS
from tests.unit.planning.jobs import NOW, changed
from tests.unit.planning.test_server_move import GOOD, SAME, ended, moving, phase, seen, sides, step, wanted, window

GONE = "HTTPRoute edge is not there: create it"


def routed(job: Job) -> Job:
    server = job.spec.workload.server
    assert server is not None
    traffic = server.traffic.model_validate({"httpRoute": {"name": "edge"}})
    server = server.model_copy(update={"traffic": traffic})
    workload = job.spec.workload.model_copy(update={"server": server})
    return replace(job, spec=job.spec.model_copy(update={"workload": workload}))


def requests_to(job: Job) -> tuple[tuple[int, ...], int | None, int]:
    [found] = (command for command in commands(job) if isinstance(command, DirectTraffic))
    return found.revisions, found.beside, found.percent


def after(job: Job, seconds: float, up: int = 1, **observed: Any) -> Job:
    at = NOW + seconds
    return seen(job, up, now=at, sides=sides(window(1000, 1, at=at - 30), SAME), **observed)


def test_one_replica_gets_5_25_and_50_percent_and_then_all() -> None:
    job = routed(moving(new=1, old=1))
    assert requests_to(job) == ((1,), 1, 0)
    job = step(job)
    assert (phase(job), requests_to(job)) == (Phase.SURGING, ((1,), 2, 0))
    job = seen(job, 1)
    for at, percent in enumerate((5, 25, 50)):
        assert (phase(job), requests_to(job), wanted(job)) == (Phase.SHARING, ((1,), 2, percent), {1: 1, 2: 1})
        job = after(job, 60.0 * (at + 1))
    assert (phase(job), requests_to(job)) == (Phase.HOLDING, ((1,), 2, 100))
    job = after(job, 300.0 + HELD_WINDOWS * job.spec.profiling.window.total_seconds())
    assert job.state.history[-1].outcome is Outcome.VERIFIED
    assert (requests_to(job), ended(job), wanted(job)) == (((2,), 2, 0), {1}, {2: 1})


def test_all_go_back_by_one_command() -> None:
    job = seen(step(routed(moving(new=1, old=1))), 1)
    job = seen(job, 1, sides=sides(window(300, 60), SAME))
    assert job.state.history[-1].reason is Reason.TOO_LATE
    assert (requests_to(job), ended(job)) == (((1,), 1, 0), {2})


def test_as_many_replicas_come_up_as_the_share_takes() -> None:
    job = seen(step(routed(moving(new=8, old=4))), 1)
    assert (wanted(job), requests_to(job)) == ({1: 4, 2: 1}, ((1,), 2, 5))
    job = after(job, 60.0)
    assert (wanted(job), requests_to(job)) == ({1: 4, 2: 2}, ((1,), 2, 25))
    job = after(job, 120.0, up=2)
    assert (wanted(job), requests_to(job)) == ({1: 4, 2: 4}, ((1,), 2, 50))
    assert wanted(after(job, 180.0, up=4)) == {1: 4, 2: 8}


@pytest.mark.parametrize("held", [False, True])
def test_a_route_that_is_gone_ends_the_move(held: bool) -> None:
    job = seen(step(routed(moving(new=1, old=1))), 1)
    for at in range(3 if held else 0):
        job = after(job, 60.0 * (at + 1))
    assert phase(job) is (Phase.HOLDING if held else Phase.SHARING)
    job = seen(job, 1, route_problem=GONE)
    entry = job.state.history[-1]
    assert (entry.outcome, entry.reason, entry.message) == (Outcome.ROLLED_BACK, Reason.ROUTE_UNUSABLE, GONE)


def test_without_a_route_to_write_no_move_begins_of_itself_and_a_demanded_one_shares_by_endpoints() -> None:
    job = changed(routed(moving(new=1, old=1)), route_problem=GONE)
    assert work_of(job.spec).unplanned(job) is Reason.ROUTE_UNUSABLE
    job = seen(step(job), 1, route_problem=GONE, sides=sides(GOOD, SAME))
    assert (phase(job), requests_to(job)) == (Phase.SHARING, ((1, 2), 1, 0))


@pytest.mark.parametrize(("alone", "back"), [(60, False), (200, True)])
def test_a_small_share_that_no_request_came_of_yet_is_no_silence(alone: float, back: bool) -> None:
    """Of one in twenty; by endpoints every other one would have come."""
    job = seen(step(routed(moving(new=1, old=1))), 1)
    at = NOW + LONGEST_UNREAD_SECONDS + 1.0
    job = seen(job, 1, now=at, sides=sides(window(0, at=at - 50), window(alone / 3.0, at=at - 50)))
    assert (job.state.migration is None) is back


@given(st.integers(1, 40), st.floats(1.0, 4.0))
def test_each_step_keeps_the_limit_at_the_peak_on_much_slower_chips(new: int, spare: float) -> None:
    """Where all of them do."""
    percent, up = next_percent(0), 0
    while percent is not None:
        assert up <= up_for(percent, new, spare) <= new
        up = up_for(percent, new, spare)
        assert up == new or up * min(spare, SLOWEST) >= SLOWEST * new * percent / 100.0 - 1e-6
        percent = next_percent(percent)
