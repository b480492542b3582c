"""What is said of a job whose user has edited its program: by its condition, by Events and by `rightpool explain`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.conditions import ConditionType
from rightpool.api.program_edit import EditVerdict, ProgramEdit
from rightpool.api.state import JobState
from rightpool.cli.explain import document, explain
from rightpool.cli.explanation import print_explanation
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.profiles.bottleneck import Bottleneck
from rightpool.profiles.diagnosis import diagnose
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.conditions.table import conditions_of
from rightpool.reporting.events import JobEvents
from tests.unit.cli.cluster import NOW as STORED
from tests.unit.cli.cluster import job as stored_job
from tests.unit.cli.cluster import printed, running_status, two_pools, view_of
from tests.unit.planning.jobs import NOW, changed, judged, running
from tests.unit.prediction.fixtures import A100

MESSAGE = "samples/s -20.0% (-23.1% to -16.7%) with trainer:1.5 against trainer:1.4"


def edited(verdict: EditVerdict | None, bottleneck: Bottleneck = Bottleneck.INPUT_BOUND) -> Job:
    job = running(ratios={"chip_busy": 0.4, "input_wait": 0.6})
    assert job.state.revision is not None and job.observed.profile is not None
    diagnosis = replace(diagnose(job.observed.profile, A100.accelerator), bottleneck=bottleneck)
    job = changed(job, diagnosis=diagnosis)
    edit = ProgramEdit("h0", rates=(1000.0,) * 3)
    if verdict is not None:
        edit = replace(edit, rates=(), judged="h", verdict=verdict, ratio=0.8, message=MESSAGE)
    return changed(job, edit=edit)


def conditions(job: Job) -> dict[str, Any]:
    return {one.type: one for one in conditions_of(job, Context(judged(job), A100.price, True, NOW))}


@pytest.mark.parametrize(
    ("verdict", "bottleneck", "reason"),
    [
        (EditVerdict.REGRESSED, Bottleneck.INPUT_BOUND, "Regressed"),
        (EditVerdict.REGRESSED, Bottleneck.THROTTLED, "Throttled"),
        (EditVerdict.NO_WORSE, Bottleneck.INPUT_BOUND, "InputBound"),
        (EditVerdict.UNKNOWN, Bottleneck.INPUT_BOUND, "InputBound"),
        (None, Bottleneck.INPUT_BOUND, "InputBound"),
    ],
)
def test_a_regression_is_a_condition_and_a_fault_goes_before(
    verdict: EditVerdict | None, bottleneck: Bottleneck, reason: str
) -> None:
    found = conditions(edited(verdict, bottleneck))[ConditionType.EFFICIENT]
    assert (found.status, found.reason) == ("False", reason)
    assert (found.message == MESSAGE) is (reason == "Regressed")


@pytest.mark.parametrize(
    ("verdict", "found"),
    [
        (EditVerdict.REGRESSED, [("Regressed", True, MESSAGE)]),
        (EditVerdict.IMPROVED, [("Improved", False, MESSAGE)]),
        (EditVerdict.NO_WORSE, []),
        (EditVerdict.UNKNOWN, []),
    ],
)
def test_a_verdict_is_an_event_once(verdict: EditVerdict, found: list[tuple[str, bool, str]]) -> None:
    before, after, events = edited(None), edited(verdict), JobEvents()
    efficient = [one for one in conditions(after).values() if one.type == ConditionType.EFFICIENT]
    first = [one for one in conditions(before).values() if one.type == ConditionType.EFFICIENT]
    made = events.events({}, before, after, first, efficient)
    assert [(one.reason, one.warning, one.note) for one in made] == found
    assert list(events.events({}, after, after, efficient, efficient)) == []
    assert list(JobEvents().events({}, after, after, efficient, efficient)) == [], "a new operator repeats nothing"


@pytest.mark.parametrize("verdict", [EditVerdict.REGRESSED, EditVerdict.IMPROVED])
def test_the_verdict_of_the_next_edit_is_an_event_of_its_own(verdict: EditVerdict) -> None:
    first, events = edited(verdict), JobEvents()
    assert first.state.edit is not None
    second = changed(first, edit=replace(first.state.edit, message="with trainer:1.6 against trainer:1.5"))
    for before, after in ((edited(None), first), (first, second)):
        sides = (
            (one for one in conditions(job).values() if one.type == ConditionType.EFFICIENT) for job in (before, after)
        )
        (made,) = events.events({}, before, after, *sides)
        assert after.state.edit is not None
        assert (made.reason, made.note, made.subject) == (verdict.value, after.state.edit.message, "")


def explained(edit: dict[str, Any] | None) -> tuple[dict[str, Any], str]:
    client = two_pools()
    status = running_status()
    if edit is not None:
        status["placement"]["workloadHash"] = edit.get("judged") or "h"
        known = {"from": "h0", "image": "trainer:1.4"}
        status = JobState.stored({**status, "edit": {**known, **edit}})
    client.add(PROFILED_JOBS, stored_job(status=status))
    page, stream = printed()
    found = explain(view_of(client), JobKey("vision", "resnet50"), STORED)
    print_explanation(page, found)
    return document(found), stream.getvalue()


def test_explain_says_how_an_edit_compares() -> None:
    edit = {"judged": "h", "verdict": "Regressed", "ratio": "0.8", "message": MESSAGE}
    found, text = explained(edit)
    assert found["edit"] == {"from": "trainer:1.4", "verdict": "Regressed", "ratio": 0.8, "message": MESSAGE}
    assert "Since the edit: slower" in text and "against trainer:1.4" in text
    found, text = explained({"rates": ["1000"] * 3})
    assert found["edit"] is None and "Since the edit: not known yet" in text
    found, text = explained(None)
    assert found["edit"] is None and "Since the edit" not in text
