"""A trial under way: it begins where it is worth its chips, and whatever comes of it, the job runs on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.state import JobState
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.planning.moves.commands import EndTrial, EnsureRevision, EnsureTrial, commands
from rightpool.planning.moves.trying import with_trial
from rightpool.planning.offers.experience import measured_before
from rightpool.planning.offers.trial import TrialOffer
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying, affordable, trial_seconds
from rightpool.reporting.events import JobEvents
from tests.unit.planning.jobs import AUTO, NOW, POOLS, THERE, changed, running, spec

OFFER = TrialOffer(THERE, 180.0, 300.0, 0.2, 40.0, 2.4, None, POOLS["a10g"].accelerator.key)


def job(**fields: Any) -> Job:
    return running(made=spec(trial={"duration": "3m", "maxCost": "1"}), **fields)


def begun(**fields: Any) -> Job:
    return with_trial(job(**fields), Trying(OFFER), AUTO, NOW)


def after(seen: TrialSeen | None, seconds: float = 200.0, before: Job | None = None) -> Job:
    return with_trial(changed(before or begun(), trial=seen), NO_TRIAL, AUTO, NOW + seconds)


def test_it_begins_beside_the_job() -> None:
    found = begun()
    run = found.state.trial
    assert run is not None and (run.number, run.placement, run.measures) == (1, THERE, 180.0)
    asked = commands(found)
    assert EnsureTrial(run) in asked
    assert any(isinstance(command, EnsureRevision) and command.ref == found.state.revision for command in asked)
    assert trial_seconds(found) is None, "one at a time"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"made": spec()}, id="without consent"),
        pytest.param({"made": spec(trial={}, suspend=True)}, id="stopped"),
        pytest.param({"made": spec(trial={}), "trial": TrialSeen(1)}, id="the last one is still there"),
    ],
)
def test_none_begins(fields: dict[str, Any]) -> None:
    other = running(**fields)
    assert trial_seconds(other) is None
    assert with_trial(other, Trying(OFFER), AUTO, NOW) is other


def test_what_it_measures_counts_from_then_on() -> None:
    found = after(TrialSeen(1, NOW + 20.0, 600.0))
    assert found.state.trial is None
    (tried,) = found.state.tried
    assert tried.ratio == pytest.approx(0.6) and tried.there == THERE
    assert tried.cost == pytest.approx(2.4 * 200.0 / 3600.0)
    known = measured_before(found, NOW + 200.0, POOLS)[THERE]
    assert known.ratio == pytest.approx(0.6) and known.sd < 0.2
    assert commands(changed(found, trial=TrialSeen(1)))[-1] == EndTrial(1)
    assert JobState.from_dict(found.state.to_dict()).tried[0].ratio == tried.ratio


@pytest.mark.parametrize(
    ("seen", "seconds", "why"),
    [
        (None, 10_000.0, "it did not start within"),
        (TrialSeen(1), 10_000.0, "it did not start within"),
        (TrialSeen(1, NOW + 20.0), 600.0, "it was not measured within 540 s"),
        (TrialSeen(1, NOW + 20.0, ended="container main exited with 1: no such device"), 60.0, "no such device"),
        (TrialSeen(1, NOW + 20.0, 3.0, WorkUnit.STEPS), 60.0, "it counts steps there"),
    ],
)
def test_what_can_not_run_there_is_not_tried_again(seen: TrialSeen | None, seconds: float, why: str) -> None:
    found = after(seen, seconds)
    (tried,) = found.state.tried
    assert tried.ratio is None and why in tried.why
    assert THERE not in measured_before(found, NOW + seconds, POOLS)


@pytest.mark.parametrize("seen", [None, TrialSeen(1), TrialSeen(1, NOW + 20.0)])
def test_until_then_it_goes_on(seen: TrialSeen | None) -> None:
    waiting = changed(begun(), trial=seen)
    assert with_trial(waiting, NO_TRIAL, AUTO, NOW + 30.0) is waiting


def test_it_ends_for_who_waits_for_its_chips_and_may_come_again() -> None:
    found = with_trial(begun(), Trying(breaks_off=True), AUTO, NOW + 30.0)
    assert (found.state.trial, found.state.tried) == (None, ())
    again = with_trial(found, Trying(OFFER), AUTO, NOW + 60.0)
    assert again.state.trial is not None and again.state.trial.number == 2


def test_who_has_its_name_already_ends_it_at_once() -> None:
    before = changed(begun(), trial=TrialSeen(1, taken=True))
    assert not any(isinstance(command, EnsureTrial | EndTrial) for command in commands(before))
    found = with_trial(before, NO_TRIAL, AUTO, NOW + 30.0)
    assert (found.state.trial, found.state.tried, found.state.trials_cost) == (None, (), 0.0)
    (event,) = JobEvents().events({}, before, found, (), ())
    assert (event.reason, "job-t1 is there and somebody else's" in event.note) == ("TrialFailed", True)
    again = with_trial(changed(found, trial=None), Trying(OFFER), AUTO, NOW + 60.0)
    assert again.state.trial is not None and again.state.trial.number == 2


@pytest.mark.parametrize("edit", [{"made": spec()}, {"made": spec(trial={}, suspend=True)}, {"workload_hash": "other"}])
def test_it_ends_with_the_consent_the_program_and_the_job(edit: dict[str, Any]) -> None:
    state = begun().state
    other = running(**{"made": spec(trial={}), **edit})
    other = other.with_state(replace(other.state, trial=state.trial, trials=1))
    found = with_trial(changed(other, trial=TrialSeen(1, NOW, 600.0)), NO_TRIAL, AUTO, NOW + 30.0)
    assert (found.state.trial, found.state.tried) == (None, ())


def test_its_dollars_are_bounded() -> None:
    """$0.20 each, of $1."""
    one = job()
    for count in range(5):
        assert affordable(one, OFFER), count
        one = after(TrialSeen(count + 1, NOW, 600.0), 300.0, before=with_trial(one, Trying(OFFER), AUTO, NOW))
        one = changed(one, trial=None)
    assert not affordable(one, OFFER)


def test_what_a_trial_cost_that_was_broken_off_counts() -> None:
    found = with_trial(begun(), Trying(breaks_off=True), AUTO, NOW + 900.0)
    assert found.state.trials_cost == pytest.approx(0.6)
    assert affordable(found, OFFER) and not affordable(
        after(None, 900.0, before=with_trial(found, Trying(OFFER), AUTO, NOW)), OFFER
    )


def test_it_ends_where_its_dollars_are_spent() -> None:
    (tried,) = after(TrialSeen(1, NOW + 1400.0), 1600.0).state.tried
    assert tried.ratio is None and tried.why == "trial.maxCost of $1.00 is spent"
