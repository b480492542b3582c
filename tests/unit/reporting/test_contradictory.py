"""Counters that contradict each other, in condition Profiled."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.conditions import ConditionType, Reason
from rightpool.profiles.consistency import Inconsistency
from rightpool.profiles.sample import Field
from tests.unit.planning.jobs import changed, running
from tests.unit.reporting.test_conditions import condition_of


def test_counters_that_contradict_each_other_are_named() -> None:
    job = running()
    assert job.observed.profile is not None
    aside = {
        Field.MATRIX_ACTIVE: Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP,
        Field.COMPUTE_ACTIVE: Inconsistency.UNITS_ACTIVE_ON_IDLE_CHIP,
        Field.INPUT_WAIT: Inconsistency.OUT_OF_RANGE,
    }
    condition = condition_of(
        ConditionType.PROFILED, changed(job, profile=replace(job.observed.profile, set_aside=aside))
    )
    assert (condition.status, condition.reason) == ("True", Reason.CONTRADICTORY_TELEMETRY)
    for words in ("computeActive, matrixActive: busier", "inputWait: a share outside 0%", "check which chips"):
        assert words in condition.message
