"""Forecast: progress, the end, and how likely a deadline or a budget is missed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.account import Account
from rightpool.api.estimate import Estimate
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.forecast import forecast
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from tests.unit.planning.jobs import NOW, POOLS, assess, changed, running, spec

RATE = Estimate(1000.0, 0.1)
DONE = 1000.0 * 86_400.0  # the job of these tests has run for a day


def job(hours: float | None = None, left: float = 3_600_000.0, budget: str | None = None, **fields: Any) -> Job:
    """A job with `left` samples to do, an hour at its rate, and a deadline in so many hours."""
    targets: dict[str, Any] = {} if budget is None else {"budget": budget}
    if hours is not None:
        targets["deadline"] = (datetime.fromtimestamp(NOW, UTC) + timedelta(hours=hours)).isoformat()
    made = spec(targets=targets, progress={"totalSamples": int(DONE + left)})
    return running(made=made, **fields)


def status_of(job: Job) -> Mapping[str, Any]:
    """In wire form."""
    context = Context(assess(job, POOLS, PlacementPolicySpec(), NOW), POOLS["a100"].price, True, NOW)
    return draft_status(StoredJob(job, packed({}), None, ""), job, context).body


def test_progress_and_the_end() -> None:
    rest = forecast(job(), RATE, NOW)
    assert rest.progress == pytest.approx(DONE / (DONE + 3_600_000), rel=0.01)
    assert rest.finish_at == pytest.approx(NOW + 3600, abs=60)
    assert (rest.time_left, rest.late, rest.money_left, rest.over) == (None, None, None, None)


def test_an_end_that_no_calendar_has_is_not_told() -> None:
    """Who writes some large number for a job without an end must not be without a status for that."""
    endless = running(made=spec(progress={"totalSamples": 10**18}, targets={"deadline": "2100-01-01T00:00:00Z"}))
    for rate in (RATE, Estimate(1e-300, 0.1)):
        rest = forecast(endless, rate, NOW)
        assert rest.finish_at is None and rest.progress is not None and rest.late == pytest.approx(1.0)
    body = status_of(endless)
    assert body["outlook"].keys() == {"progress"}
    assert "the deadline 2100-01-01T00:00:00Z is missed" in str(body["conditions"])


def test_a_deadline_is_as_likely_missed_as_not_where_the_time_is_what_is_needed() -> None:
    assert forecast(job(hours=1.0), RATE, NOW).late == pytest.approx(0.5, abs=0.1)
    assert (forecast(job(hours=2.0), RATE, NOW).late or 0.0) < 0.01
    assert (forecast(job(hours=0.5), RATE, NOW).late or 0.0) > 0.99
    assert forecast(job(hours=-1.0), RATE, NOW).late == 1.0


def test_a_budget_that_is_spent_is_exceeded_whatever_is_known_of_the_rate() -> None:
    spent = changed(job(budget="10"), account=Account(spent=12.0))
    assert forecast(spent, None, NOW).over == 1.0
    assert forecast(spent, RATE, NOW).money_left == pytest.approx(-2.0)
    assert forecast(changed(job(budget="10"), account=Account(spent=1.0)), None, NOW).over is None


@given(st.floats(0.1, 100.0), st.floats(0.1, 100.0))
def test_more_time_never_makes_it_likelier_to_be_late(one: float, two: float) -> None:
    less, more = sorted((one, two))
    assert (forecast(job(hours=more), RATE, NOW).late or 0.0) <= (forecast(job(hours=less), RATE, NOW).late or 0.0)
