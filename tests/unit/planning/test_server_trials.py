"""Trials of a server: offered where they tell enough, asked for, refused with why, and what they show decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.trial_request import TrialRequest
from rightpool.api.work_unit import WorkUnit
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.planning.moves.trying import with_trial
from rightpool.planning.offers.trial_consent import NO_TRIAL
from rightpool.prediction.columns import floats
from rightpool.prediction.predictor import Origin
from rightpool.profiles.loads import Points
from tests.unit.planning.jobs import AUTO, NOW, changed, decided_text, find, fleet, judged, plan
from tests.unit.planning.test_server_offers import CHEAP, POOLS, SEEN, server
from tests.unit.prediction.fixtures import A100

# As cheap as the A100 by what is predicted, so that measuring decides.
SAME = replace(CHEAP, price=replace(CHEAP.price, on_demand=1.3))
CLOSE: dict[str, Pool] = {"a100": A100, "a10g": SAME}
SAMPLE = {"method": "POST", "path": "/infer"}
ASKED = TrialRequest("cli-1", "a10g")


def tried(job: Job, sample: dict[str, Any] | None = SAMPLE, **fields: Any) -> Job:
    """It lets its program be tried."""
    body = job.spec.model_dump(by_alias=True, exclude_none=True, mode="json", exclude_unset=True)
    body["trial"] = {"duration": "3m", "maxCost": "2"}
    if sample is not None:
        body["workload"]["server"]["warmUp"] = sample
    return replace(changed(job, spec=type(job.spec).model_validate(body)), **fields)


def after(job: Job, pools: dict[str, Pool], now: float = NOW) -> Job:
    return with_trial(job, plan(fleet([job], pools)).trying(job.key), AUTO, now)


def test_one_replica_is_tried_where_measuring_decides() -> None:
    run = after(tried(server(CLOSE)), CLOSE).state.trial
    assert run is not None
    assert (run.placement.pool, run.placement.replicas, run.placement.chips) == ("a10g", 1, 1)
    assert run.measures <= 180.0 and run.cost_per_hour == pytest.approx(1.3)
    assert run.load >= 8, "twice as many as a batch has at the peak"


@pytest.mark.parametrize("price", [0.05, 60.0])
def test_none_is_where_it_is_clear_anyhow(price: float) -> None:
    pools = {"a100": A100, "a10g": replace(CHEAP, price=replace(CHEAP.price, on_demand=price))}
    assert after(tried(server(pools)), pools).state.trial is None


def test_what_a_user_asks_for_begins_though_it_is_clear() -> None:
    found = after(tried(server(), trial_request=ASKED), POOLS)
    assert found.state.trial is not None and found.state.trial.measures == 180.0
    assert found.state.trial_answer is not None and found.state.trial_answer.number == 1


@pytest.mark.parametrize(
    ("job", "why"),
    [
        pytest.param(tried(server(), None, trial_request=ASKED), "set workload.server.warmUp", id="no sample"),
        pytest.param(
            tried(changed(server(), sizing=None), trial_request=ASKED), "are not known yet", id="without a record"
        ),
    ],
)
def test_it_is_refused_with_why(job: Job, why: str) -> None:
    answer = after(job, POOLS).state.trial_answer
    assert answer is not None and why in answer.refused and len(answer.refused) <= 160


def begun() -> Job:
    found = after(tried(server(CLOSE)), CLOSE)
    assert found.state.trial is not None
    return found


def test_what_it_shows_is_kept_and_decides() -> None:
    """A batch takes as long there as here, at a third of the price."""
    job = changed(begun(), trial=TrialSeen(1, NOW + 30.0, 400.0, WorkUnit.REQUESTS, against=410.0))
    over = with_trial(job, NO_TRIAL, AUTO, NOW + 200.0)
    (shown,) = over.state.tried
    assert over.state.trial is None and shown.ratio == pytest.approx(400.0 / 410.0)
    assert shown.cost == pytest.approx(1.3 * 200.0 / 3600.0)
    known = server(CLOSE, {"a10g": Points(floats([1.0, 8.0]), SEEN.seconds[[0, -1]] * 1.02, floats([20.0] * 2))})
    job = changed(over, sizing=known.observed.sizing, trial=None)
    found = judged(job, CLOSE)
    there = find(found, "a10g")
    assert there.origin is Origin.MEASURED_IN_TRIAL
    assert found.decision.action is Action.MOVE and found.decision.target == there.placement
    assert "measured there, in a trial" in decided_text(found)
    assert after(job, CLOSE).state.trial is None, "what is known is not tried again"


def test_one_that_does_not_answer_is_not_tried_again() -> None:
    job = changed(begun(), trial=TrialSeen(1, NOW + 30.0, ended="container server exited with 1: no such device"))
    over = with_trial(job, NO_TRIAL, AUTO, NOW + 60.0)
    (shown,) = over.state.tried
    assert shown.ratio is None and "no such device" in shown.why
    assert after(changed(over, trial=None), CLOSE).state.trial is None


def test_it_ends_for_another_that_waits_for_the_chips_and_not_for_itself() -> None:
    """Where it is clear by now that the chips would pay, and none but that of the trial is free."""
    full = {"a100": A100, "a10g": replace(CHEAP, price=replace(CHEAP.price, on_demand=0.05), free=0)}
    job = begun()
    assert judged(job, full).decision.reason is Reason.WAITING_FOR_CAPACITY
    assert after(job, full).state.trial is job.state.trial
    other = altered(server(full), key=JobKey(job.key.namespace, "other"))
    made = plan(fleet([job, other], full))
    assert made.assessments[other.key].decision.reason is Reason.WAITING_FOR_CAPACITY
    assert with_trial(job, made.trying(job.key), AUTO, NOW).state.trial is None
