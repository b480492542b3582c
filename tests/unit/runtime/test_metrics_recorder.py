"""MetricsRecorder: how decisions, migrations and the fleet become metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import Decision
from rightpool.reporting.stored_job import read_job
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.metrics_recorder import MetricsRecorder
from tests.unit.planning.jobs import NOW, changed, entry, running
from tests.unit.planning.world import candidate
from tests.unit.runtime.makers import profiled_job

REF = Revision(1, Placement("a100", 4, 1), "h", 4, 1, 1.7e9)
MOVE = Migration("d-2", Action.MOVE, Phase.DRAINING, REF, replace(REF, revision=2), 1.7e9, 1.7e9, Reason.MOVING, "")


def job(**fields: object) -> Job:
    return changed(read_job(profiled_job()).job, **fields)


def test_an_unchanged_decision_counts_once_and_that_of_a_new_job_again() -> None:
    metrics = OperatorMetrics(lambda: True)
    recorder = MetricsRecorder(metrics)
    kept = Assessment(Decision(Action.KEEP, Reason.CHEAPEST))
    for _ in range(3):
        recorder.decided(job(), kept, 1.7e9)
    counter = metrics.decisions.labels("Keep", "Cheapest")
    assert counter._value.get() == 1
    recorder.forget({"uid-1"})
    recorder.decided(job(), kept, 1.7e9)
    assert counter._value.get() == 2


def test_each_job_has_one_state_and_its_cost_is_in_the_sums() -> None:
    metrics = OperatorMetrics(lambda: True)
    runs = {1: RevisionState(1, True, active=1, running=1)}
    paid = Account(saved=-2.5, cost_per_hour=4.0)
    jobs = [
        job(),
        job(revision=REF, revisions=runs, account=paid),
        job(revision=REF, revisions=runs, migration=MOVE, account=paid),
        job(finished="Failed", account=replace(paid, cost_per_hour=None)),
        changed(read_job(profiled_job(suspend=True)).job, revision=REF),
    ]
    MetricsRecorder(metrics).fleet(jobs, 3, 1.7e9, breaker_open=True)
    states = {sample.labels["state"]: sample.value for sample in metrics.jobs.collect()[0].samples}
    assert states == dict.fromkeys(("Waiting", "Running", "Migrating", "Finished", "Suspended"), 1.0)
    assert metrics.migrating.labels("Draining")._value.get() == 1
    assert metrics.breaker_open._value.get() == 1
    assert (metrics.spent._value.get(), metrics.saved._value.get()) == (8.0, -7.5)


def test_what_moves_save_is_counted_up_to_now() -> None:
    """And not up to the last time that an account was settled."""
    metrics = OperatorMetrics(lambda: True)
    saving = Account(saved=1.0, since=1.7e9, cost_per_hour=4.0, saving_per_hour=2.0)
    MetricsRecorder(metrics).fleet([job(revision=REF, account=saving)], 1, 1.7e9 + 1800.0, breaker_open=False)
    assert metrics.saved._value.get() == pytest.approx(2.0)


def test_what_is_recommended_to_a_job_that_has_ended_is_not_to_be_had() -> None:
    """It is not looked at any more, so that nothing takes its last recommendation back."""
    metrics = OperatorMetrics(lambda: True)
    recorder = MetricsRecorder(metrics)
    here = running(Placement("a100", 4, 1), 1000.0)
    offered = Decision(Action.HOLD, Reason.POLICY_RECOMMEND_ONLY, candidate(Placement("a10g", 4, 1), 900.0))
    recorder.decided(here, Assessment(offered), NOW)
    recorder.fleet([here], 1, NOW, breaker_open=False)
    assert metrics.potential_savings._value.get() > 1.0
    recorder.fleet([changed(here, finished="Completed")], 1, NOW, breaker_open=False)
    assert metrics.potential_savings._value.get() == 0.0


def test_a_migration_and_its_prediction_error_count_once() -> None:
    metrics = OperatorMetrics(lambda: True)
    measured = entry(Outcome.VERIFIED, 1.7e9, predicted_throughput=100.0, realised_throughput=88.0)
    unmeasured = replace(measured, id="d-2", outcome=Outcome.HELD, realised_throughput=None)
    MetricsRecorder(metrics).ended(job(), job(history=(measured, unmeasured)))
    MetricsRecorder(metrics).ended(job(history=(measured, unmeasured)), job(history=(measured, unmeasured)))
    assert metrics.migrations.labels("Verified")._value.get() == metrics.migrations.labels("Held")._value.get() == 1
    errors = {(s.name, s.labels["side"]): s.value for s in metrics.prediction_error.collect()[0].samples}
    assert errors[("rightpool_operator_prediction_error_ratio_count", "slower")] == 1
    assert round(errors[("rightpool_operator_prediction_error_ratio_sum", "slower")], 6) == 0.12
