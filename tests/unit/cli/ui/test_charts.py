"""Drawings as numbers: the timeline, a step, and intervals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.estimate import Estimate
from rightpool.api.ledger import MAX_HISTORY
from rightpool.api.placement import Placement
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.explain import explain
from rightpool.cli.step_parts import step_parts
from rightpool.cli.timeline import Stretch, stretches
from rightpool.cli.ui.charts import HEIGHT, WIDTH, bars, intervals
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.offers.candidate import Candidate
from rightpool.reporting.stored_job import read_job
from tests.unit.cli.cluster import NOW, job, moment, placement, running_status, view_of
from tests.unit.cli.ui.pages import MOVED, decision, fleet


def drawn_stretches(**status: Any) -> list[Stretch]:
    body = job(status=running_status(**status))
    body["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return stretches(read_job(body).job, 6070.0, NOW)


def test_the_timeline_is_that_of_the_ledger() -> None:
    found = drawn_stretches(history=MOVED)
    assert [(stretch.placement.pool, stretch.rate, stretch.what) for stretch in found] == [
        ("a10g", 3000, "created, and ran"),
        ("a100", 6070, "Move d-1: Verified"),
        ("a100", 6070, "ran"),
        ("a10g", 2500, "Move d-2: RolledBack"),
        ("a100", 6070, "revision 1, now"),
    ]
    assert [stretch.moves for stretch in found] == [False, True, False, True, False]
    assert (found[0].start, found[-1].end) == (NOW - 4000, NOW)
    assert all(left.end == right.start for left, right in pairwise(found)), "without gaps"


def test_a_job_that_was_never_moved_has_run_since_its_pods_run() -> None:
    (only,) = drawn_stretches()
    assert (only.start, only.end, only.rate) == (NOW - 3600, NOW, 6070)


def test_a_move_that_is_being_made_is_on_it() -> None:
    migration = {
        "id": "d-3",
        "action": "Move",
        "phase": "Verifying",
        "startedAt": moment(100),
        "phaseStartedAt": moment(50),
        "from": placement(),
        "to": placement("a10g", revision=2),
        "reason": "CheaperPoolMeetsTargets",
    }
    *_, before, last = drawn_stretches(history=MOVED, migration=migration)
    assert (before.end, before.placement.pool, before.what) == (NOW - 100, "a100", "ran")
    assert (last.moves, last.placement.pool, last.what) == (True, "a10g", "Move d-3: Verifying")


def test_what_was_given_up_before_anything_was_touched_is_not_on_it() -> None:
    assert [stretch.what for stretch in drawn_stretches(history=[decision(1, "Held", "a100", "a10g", 900, 800)])] == [
        "revision 1, now"
    ]


def test_what_is_no_longer_in_the_ledger_is_not_told() -> None:
    history = [decision(n, "Verified", "a100", "a100", 3000 - 100 * n, 2950 - 100 * n) for n in range(MAX_HISTORY)]
    assert drawn_stretches(history=history)[0].start == NOW - 3000, "the job is older"


def test_a_job_that_has_ended_runs_no_more() -> None:
    ended = [{"type": "Completed", "status": "True", "reason": "JobCompleted", "lastTransitionTime": moment(1)}]
    assert drawn_stretches(conditions=ended, history=MOVED)[-1].what == "Move d-2: RolledBack"


@given(st.lists(st.tuples(st.floats(0.001, 1e7), st.none() | st.floats(0.0, 1e9)), min_size=1, max_size=12))
def test_bars_stay_in_the_drawing(given: list[tuple[float, float | None]]) -> None:
    at, made = NOW, []
    for length, rate in given:
        made.append(Stretch(at, at + length, Placement("p", 1, 1), rate, "ran"))
        at += length
    for bar in bars(made, at):
        assert 0.0 <= bar.left < WIDTH and 0.0 < bar.width <= WIDTH + 1e-6 and 0.0 <= bar.height <= HEIGHT


def test_what_was_not_measured_is_drawn_as_such() -> None:
    place = Placement("p", 1, 1)
    drawn = bars([Stretch(0, 9, place, 5.0, "ran"), Stretch(9, 10, place, None, "Move", moves=True)], 10.0)
    assert [(bar.kind, bar.rate, bar.height) for bar in drawn] == [
        ("ran", "5 samples/s", HEIGHT),
        ("unknown", "-", HEIGHT),
    ]


def test_rates_in_another_unit_are_told_and_not_compared() -> None:
    place = Placement("p", 1, 1)
    three = [
        Stretch(0, 8, place, 640.0, "ran"),
        Stretch(8, 9, place, 1.0, "ran", unit=WorkUnit.STEPS),
        Stretch(9, 10, place, 2.0, "ran", unit=WorkUnit.STEPS),
    ]
    assert [(bar.kind, bar.rate, bar.height) for bar in bars(three, 10.0)] == [
        ("unknown", "640 samples/s", HEIGHT),
        ("ran", "1 steps/s", HEIGHT / 2),
        ("ran", "2 steps/s", HEIGHT),
    ]


def test_a_step_is_divided_completely() -> None:
    found = explain(view_of(fleet()), JobKey("vision", "moved"), NOW)
    parts = step_parts(found.job.observed.profile)
    assert sum(part.share for part in parts) == pytest.approx(1.0)
    assert {part.name: part.text for part in parts}["exposed communication"] == "10%"
    assert [part.start for part in parts] == sorted(part.start for part in parts)


def test_a_step_of_which_too_little_was_measured_is_not_drawn() -> None:
    found = explain(view_of(fleet()), JobKey("vision", "resnet50"), NOW)
    assert found.job.observed.profile is not None and step_parts(found.job.observed.profile) == ()
    assert step_parts(None) == ()


def candidate(pool: str, median: float | None, sd: float = 0.1) -> Candidate:
    cost = None if median is None else Estimate(median, sd)
    return Candidate(Placement(pool, 4, 1), None, None, cost)


def test_intervals_are_drawn_on_one_scale() -> None:
    now, near, dear = candidate("a", 1.0, 0.0), candidate("b", 0.5), candidate("c", 50.0)
    found = intervals(now, [near, dear, candidate("d", None)], near.placement)
    assert [(row.where, row.kind) for row in found] == [("4×a", "now"), ("4×b", "target"), ("4×c", "eligible")]
    assert [row.cut for row in found] == [False, False, True], "one that is far off does not shrink the others"
    assert found[0].median == pytest.approx(2 * found[1].median)
    assert all(0.0 <= row.low <= row.median <= row.high <= WIDTH for row in found)
    assert "to" not in found[0].text and "to" in found[1].text, "what was measured has no interval"


def test_without_prices_nothing_is_drawn() -> None:
    assert intervals(None, [candidate("a", None)], None) == []
    assert intervals(candidate("a", None), [], None) == []
