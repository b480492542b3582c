"""The owner of an adopted object edits it where it runs, or makes it anew with another image: is it slower since?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.placement import Placement
from rightpool.api.program_edit import EditVerdict, ProgramEdit
from rightpool.api.variation import SlowStart, Variation
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.job import Job
from tests.unit.planning.jobs import FOUR, NOW, changed
from tests.unit.planning.test_only_watched import found, step
from tests.unit.planning.world import complete_profile

OLD, NEW = "trainer:1.4", "trainer:1.5"


def measured(job: Job, *rates: float, slow_start: SlowStart | None = None) -> Job:
    """It has been seen to do these samples a second, beside what is known of it."""
    known = job.state.variation or Variation(1, NOW, ())
    variation = replace(known, recent=(*known.recent, *rates), slow_start=slow_start or known.slow_start)
    return changed(job, profile=complete_profile(1, rates[-1], NOW), variation=variation)


def first(*rates: float) -> Job:
    """It runs its first program."""
    job = step(replace(found(), image=OLD))
    return step(measured(job, *rates))


def edited(job: Job, uid: str = "job-1", place: Placement = FOUR, digest: str = "h-new", image: str = NEW) -> Job:
    """What the operator goes on from once it has seen that."""
    seen = Adopted(uid, 1, place, chip="A100-SXM4-80GB")
    return step(changed(replace(job, workload_hash=digest, image=image), adopted=seen), NOW + 1.0)


def verdict_on(job: Job) -> ProgramEdit | None:
    return step(job, NOW + 2.0).state.judged_edit


@pytest.mark.parametrize("uid", ["job-1", "job-2"], ids=["where it runs", "made anew"])
def test_another_image_is_judged_by_what_the_one_before_did(uid: str) -> None:
    job = edited(first(*[1000.0] * 12), uid)
    assert job.state.adopted is not None and job.state.adopted.uid == uid
    assert job.state.edit_to_judge is not None and job.state.edit_to_judge.image == OLD
    assert job.state.variation is not None and not job.state.variation.recent, "no window is of both programs"
    assert verdict_on(measured(job, 800.0, 800.0)) is None
    edit = verdict_on(measured(job, 800.0, 800.0, 800.0))
    assert edit is not None and edit.verdict is EditVerdict.REGRESSED and edit.ratio == pytest.approx(0.8)
    assert "trainer:1.5 against trainer:1.4" in edit.message


def test_an_object_made_anew_as_it_was_is_no_edit() -> None:
    job = first(*[1000.0] * 12)
    again = edited(job, "job-2", digest=job.workload_hash, image=OLD)
    assert again.state.adopted is not None and again.state.adopted.uid == "job-2"
    assert again.state.edit is None and again.observed.variation == job.observed.variation


def test_elsewhere_and_of_what_was_not_measured_nothing_is_compared() -> None:
    assert edited(first(*[1000.0] * 12), place=Placement("a10g", 4, 1)).state.edit is None
    assert edited(first(1000.0, 1000.0)).state.edit is None


def test_a_slow_start_says_nothing_of_its_program() -> None:
    start = SlowStart(600.0, 300.0, 1)
    job = edited(first(*[1000.0] * 12))
    assert verdict_on(measured(job, 500.0, 500.0, 1000.0, slow_start=start)) is None
    edit = verdict_on(measured(job, 500.0, 500.0, *[1000.0] * 6, slow_start=start))
    assert edit is not None and edit.verdict is EditVerdict.NO_WORSE
