"""The tally: what of the fleet becomes a metric."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.conditions import Reason
from rightpool.hardware.placement import Placement
from rightpool.planning.account import Account
from rightpool.planning.assess import Assessment
from rightpool.planning.decision import Action, Decision
from rightpool.planning.ledger import Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef, RevisionState
from rightpool.planning.snapshot import JobState
from rightpool.runtime.jobs import read_job
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.tally import Tally
from tests.unit.planning.jobs import entry
from tests.unit.runtime.makers import profiled_job

REF = RevisionRef(1, Placement("a100", 4, 1), "h", (4, 1), 1.7e9)
MOVE = Migration("d-2", Action.MOVE, Phase.DRAINING, REF, replace(REF, revision=2), 1.7e9, 1.7e9, Reason.MOVING, "")


def job(**fields: object) -> JobState:
    return replace(read_job(profiled_job()).state, **fields)  # type: ignore[arg-type]


def test_the_same_decision_counts_once_and_a_job_of_that_name_counts_anew() -> None:
    metrics = OperatorMetrics(lambda: True)
    tally = Tally(metrics)
    kept = Assessment(None, (), Decision(Action.KEEP, Reason.CHEAPEST, "numbers that change"))
    for _ in range(3):
        tally.decided(job(), kept)
    counter = metrics.decisions.labels("Keep", "Cheapest")
    assert counter._value.get() == 1
    tally.forget({"uid-1"})
    tally.decided(job(), kept)
    assert counter._value.get() == 2


def test_every_job_is_in_one_state_and_its_money_in_the_sum() -> None:
    metrics = OperatorMetrics(lambda: True)
    runs = {1: RevisionState(1, True, active=1, running=1)}
    paid = Account(saved=-2.5, cost_per_hour=4.0)
    jobs = [
        job(),
        job(ref=REF, revisions=runs, account=paid),
        job(ref=REF, revisions=runs, migration=MOVE, account=paid),
        job(finished="Failed", account=replace(paid, cost_per_hour=None)),
        replace(read_job(profiled_job(suspend=True)).state, ref=REF),
    ]
    Tally(metrics).measure(jobs, pools=3, breaker_open=True)
    states = {sample.labels["state"]: sample.value for sample in metrics.jobs.collect()[0].samples}
    assert states == dict.fromkeys(("Waiting", "Running", "Migrating", "Finished", "Suspended"), 1.0)
    assert metrics.migrating.labels("Draining")._value.get() == 1
    assert metrics.breaker_open._value.get() == 1
    assert (metrics.spent._value.get(), metrics.saved._value.get()) == (8.0, -7.5)


def test_a_move_counts_once_and_so_does_the_error_of_its_prediction() -> None:
    metrics = OperatorMetrics(lambda: True)
    told = entry(Outcome.VERIFIED, 1.7e9, predicted_samples_per_second=100.0, realised_samples_per_second=88.0)
    untold = replace(told, id="d-2", outcome=Outcome.HELD, realised_samples_per_second=None)
    Tally(metrics).ended(job(), job(history=(told, untold)))
    Tally(metrics).ended(job(history=(told, untold)), job(history=(told, untold)))
    assert metrics.migrations.labels("Verified")._value.get() == metrics.migrations.labels("Held")._value.get() == 1
    errors = {(s.name, s.labels["side"]): s.value for s in metrics.prediction_error.collect()[0].samples}
    assert errors[("rightpool_operator_prediction_error_ratio_count", "slower")] == 1
    assert round(errors[("rightpool_operator_prediction_error_ratio_sum", "slower")], 6) == 0.12
