"""Degraded, of a job that runs on chips whose figures are estimated."""

from __future__ import annotations

from rightpool.api.conditions import ConditionType, Reason
from tests.unit.planning.jobs import running
from tests.unit.reporting.test_conditions import condition_of


def test_what_runs_on_chips_without_figures_says_how_to_get_them() -> None:
    found = condition_of(ConditionType.DEGRADED, running(), uncalibrated="the rates of X1 are estimated")
    assert (found.status, found.reason) == ("True", Reason.POOL_UNCALIBRATED)
    assert found.message == "pool a100: the rates of X1 are estimated"
