"""A trial that a user asks for begins where the job lets it, or is refused once, with why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.state import JobState
from rightpool.api.trial_request import TrialAnswer, TrialRequest, read_trial_request
from rightpool.api.trials_day import TrialsDay
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.planning.moves.trying import with_trial
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying
from rightpool.reporting.events import JobEvents
from tests.unit.planning.jobs import AUTO, DAY, NOW, POOLS, auto_policy, changed, fleet, fresh, plan, running, spec
from tests.unit.planning.test_trying import OFFER

TRIED = {"trial": {"duration": "3m", "maxCost": "2"}}
ASKED = TrialRequest("cli-1", "a10g")


def asking(request: TrialRequest = ASKED, sections: dict[str, Any] | None = None, **fields: Any) -> Job:
    made = spec(**(TRIED if sections is None else sections))
    return running(made=made, trial_request=request, **fields)


def after(job: Job, pools: dict[str, Pool] | None = None, *others: Job) -> Job:
    """A cycle later."""
    return with_trial(job, plan(fleet([job, *others], pools)).trying(job.key), AUTO, NOW)


def refused(job: Job, pools: dict[str, Pool] | None = None, *others: Job) -> str:
    found = after(job, pools, *others)
    assert found.state.trial is job.state.trial
    assert found.state.trial_answer is not None and found.state.trial_answer.id == ASKED.id
    assert len(found.state.trial_answer.refused) <= 160
    assert after(found, pools, *others) is found, "it is refused once"
    return found.state.trial_answer.refused


@pytest.mark.parametrize(
    ("value", "request_"),
    [
        ("cli-1", TrialRequest("cli-1")),
        (" cli-1:a10g ", ASKED),
        ("cli-1:a10g:90", TrialRequest("cli-1", "a10g", 90.0)),
        ("cli-1::90", TrialRequest("cli-1", None, 90.0)),
        ("cli-1:", TrialRequest("cli-1")),
    ],
)
def test_what_an_annotation_asks_for(value: str, request_: TrialRequest) -> None:
    assert read_trial_request(value) == request_


@pytest.mark.parametrize("value", ["", "a b", "cli-1:Pool", "cli-1:a10g:0", "cli-1:a10g:5m", "x" * 70])
def test_what_can_not_be_read_is_refused_once(value: str) -> None:
    request = read_trial_request(value)
    assert not request.valid and request == read_trial_request(value)
    found = after(asking(request))
    assert found.state.trial_answer is not None and "is not ID" in found.state.trial_answer.refused


@pytest.mark.parametrize("request_", [ASKED, TrialRequest("cli-1", "a10g", 60.0)])
def test_it_begins_though_it_would_not_by_itself(request_: TrialRequest) -> None:
    """What is left of the job pays for nothing, and a quarter of the free chips is less than it takes."""
    few = {**POOLS, "a10g": replace(POOLS["a10g"], free=4)}
    job = asking(request_, TRIED | {"placement": {"pools": {"allow": ["a100", "a10g"]}}})
    found = after(job, few)
    run = found.state.trial
    assert run is not None and run.placement.pool == "a10g" and run.measures == (request_.seconds or 180.0)
    assert found.state.trial_answer == TrialAnswer("cli-1", NOW, 1)
    assert found.trial_asked is None
    assert after(changed(found, trial=None)).state.trials == 1, "it is answered once"


@pytest.mark.parametrize(
    ("job", "why"),
    [
        pytest.param(asking(sections={}), "set spec.trial", id="no consent"),
        pytest.param(asking(replace(ASKED, seconds=300.0)), "5 min are asked for, and spec.trial", id="too long"),
        pytest.param(asking(replace(ASKED, pool="none")), "on pool none is predicted", id="no such pool"),
        pytest.param(asking(trials_cost=1.99), "$0.01 of spec.trial.maxCost is left", id="no dollars"),
        pytest.param(asking(sections=TRIED | {"suspend": True}), "ask again when it runs", id="stopped"),
        pytest.param(asking(profile=None), "was not measured yet", id="not measured"),
        pytest.param(fresh(made=spec(**TRIED), trial_request=ASKED), "ask again when it runs", id="not started"),
    ],
)
def test_it_is_refused_with_why(job: Job, why: str) -> None:
    assert why in refused(job)


def test_two_at_a_time_are_refused_and_the_last_one_may_end_first() -> None:
    one = with_trial(asking(), plan(fleet([asking()])).trying(asking().key)._replace(begin=OFFER), AUTO, NOW)
    again = changed(one, trial_request=replace(ASKED, id="cli-2"))
    found = after(again)
    assert found.state.trial == one.state.trial
    assert found.state.trial_answer is not None and "job-t1 is under way" in found.state.trial_answer.refused
    ending = changed(asking(), trial=TrialSeen(1), trials=1)
    assert plan(fleet([ending])).trying(ending.key) == NO_TRIAL


def test_chips_that_are_not_free_are_not_taken() -> None:
    full = {**POOLS, "a10g": replace(POOLS["a10g"], free=0)}
    assert "has no" in refused(asking(), full) and "chips free that no job waits for" in refused(asking(), full)


def test_the_fleet_has_dollars_for_a_day() -> None:
    """$2.00 a day, with what is under way."""
    policy = auto_policy(trials={"maxCostPerDay": "2"})
    job = asking(sections=TRIED | {"placement": {"pools": {"allow": ["a100", "a10g"]}}})

    def cycle(*others: Job, now: float = NOW) -> Job:
        return with_trial(job, plan(fleet([job, *others], policy=policy, now=now)).trying(job.key), policy, now)

    run = cycle().state.trial
    assert run is not None
    spent = running(name="other", trials_day=TrialsDay.at(NOW, 2.0))
    answer = cycle(spent).state.trial_answer
    assert answer is not None and "of the PlacementPolicy's trials.maxCostPerDay is left" in answer.refused
    assert len(answer.refused) <= 160
    assert cycle(running(name="other", trials_day=TrialsDay.at(NOW, 0.5))).state.trial is not None
    assert cycle(running(name="other", trials_day=TrialsDay.at(NOW - DAY, 2.0))).state.trial is not None, "yesterday"
    for an_hour, begins in ((10.0, True), (39.9, False)):
        other = running(name="other", made=spec(**TRIED))
        other = other.with_state(replace(other.state, trial=replace(run, cost_per_hour=an_hour)))
        assert (cycle(other).state.trial is not None) is begins, f"${an_hour * 180.0 / 3600.0:.2f} is under way"


def test_a_day_counts_whatever_ends_a_trial() -> None:
    before = asking()
    for count in (1, 2):
        begun = with_trial(before, Trying(OFFER), AUTO, NOW)
        before = with_trial(begun, Trying(breaks_off=True), AUTO, NOW + 300.0)
        assert before.state.trials_day == TrialsDay.at(NOW, count * 0.2)
    assert JobState.from_dict(before.state.to_dict()).trials_day == before.state.trials_day


def test_an_event_says_that_it_is_refused() -> None:
    before = asking(sections={})
    (event,) = JobEvents().events({}, before, after(before), (), ())
    assert (event.reason, event.warning) == ("TrialRefused", True) and "set spec.trial" in event.note
