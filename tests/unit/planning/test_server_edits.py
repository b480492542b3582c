"""A user edits what a server runs, and its chips stay: does it take longer since, whatever comes in?"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from rightpool.api.program_edit import EditVerdict, ProgramEdit
from rightpool.api.wording import MESSAGE
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.edits import LOOKS
from rightpool.planning.moves.server_edits import with_server_edit_judged
from rightpool.profiles.service import ServiceWindow, at_like_load
from tests.unit.planning.jobs import NOW, changed
from tests.unit.planning.test_surge import edited, server, step, with_target
from tests.unit.prediction.fixtures import A100

OLD, NEW = "ranker:7", "ranker:8"


def windows(
    count: int, factor: float = 1.0, load: float = 4.0, failed: float = 0.0, noise: float = 0.02, seed: int = 1
) -> tuple[ServiceWindow, ...]:
    """Of a server whose batches take 2 ms, and half a millisecond for each request. load: of the middle of them."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        size = load * math.exp(draw.gauss(0.0, 0.2))
        took = factor * (0.002 + 0.0005 * size) * math.exp(draw.gauss(0.0, noise))
        found.append(ServiceWindow(size, took, 3000.0, failed * 3000.0))
    return tuple(found)


def arrived(before: tuple[ServiceWindow, ...], seen: tuple[ServiceWindow, ...] | None = None) -> Job:
    """The edit is carried out: another image on the chips of before. seen: the windows that the operator has which ends
    the old one, those of before where nothing is said."""
    job = replace(changed(server(), service=before, image=OLD), image=NEW)
    assert job.state.revision is not None
    job = job.with_state(replace(job.state, revision=replace(job.state.revision, chip=A100.accelerator.key)))
    job = step(step(edited(job)))
    job = job if seen is None else changed(job, service=seen)
    job = step(step(with_target(job, active=2, running=2), NOW + 60.0), NOW + 65.0)
    assert job.state.revision is not None and job.state.revision.revision == 2
    return changed(job, service=())


def verdict_on(job: Job, since: tuple[ServiceWindow, ...]) -> ProgramEdit | None:
    return with_server_edit_judged(changed(job, service=since)).state.judged_edit


@pytest.mark.parametrize(
    ("factor", "verdict"), [(1.25, EditVerdict.REGRESSED), (0.8, EditVerdict.IMPROVED), (1.0, EditVerdict.NO_WORSE)]
)
def test_seconds_of_a_batch_are_compared_whatever_comes_in(factor: float, verdict: EditVerdict) -> None:
    job = arrived(windows(8))
    assert job.state.edit_to_judge is not None and job.state.edit_to_judge.image == OLD
    found = verdict_on(job, windows(24, factor, load=4.8, seed=2))
    assert found is not None and found.verdict is verdict and found.ratio == pytest.approx(1.0 / factor, rel=0.05)
    assert (found.rates, found.loads, found.answered) == ((), (), ()), "what it was judged by is needed no more"
    assert (
        found.message.startswith("seconds of a batch")
        and "at like load with ranker:8 against ranker:7" in found.message
    )
    assert len(found.message) <= MESSAGE


def test_more_failures_are_a_regression_though_batches_take_as_long() -> None:
    found = verdict_on(arrived(windows(8)), windows(3, failed=0.02, seed=2))
    assert found is not None and found.verdict is EditVerdict.REGRESSED and found.ratio is None
    assert found.message == "2% of requests fail, 0% did, with ranker:8 against ranker:7"
    often = verdict_on(arrived(windows(8, failed=0.02)), windows(12, failed=0.02, seed=2))
    assert often is not None and often.verdict is EditVerdict.NO_WORSE


def test_of_too_unlike_a_load_nothing_is_said() -> None:
    job = arrived(tuple(one._replace(load=4.0) for one in windows(8)))
    slower = tuple(one._replace(load=64.0) for one in windows(24, 1.6, seed=2))
    assert verdict_on(job, slower[:12]) is None
    found = verdict_on(job, slower)
    assert found is not None and found.verdict is EditVerdict.UNKNOWN
    assert found.message.startswith("its load does not compare: 64 requests at once, 4 before")
    assert (mixed := verdict_on(job, (*slower[:12], *windows(6, 1.6, seed=3)))) is not None
    assert mixed.verdict is EditVerdict.REGRESSED, "windows of like loads tell"


def test_what_was_not_measured_and_other_chips_are_not_compared() -> None:
    assert arrived(windows(2)).state.edit is None
    job = arrived(windows(8))
    assert verdict_on(job, windows(2, 2.0)) is None


@pytest.mark.parametrize("seen", [0, 3])
def test_another_operator_that_carries_the_edit_on_judges_it_by_what_was_measured_before(seen: int) -> None:
    job = arrived(windows(8), windows(seen, seed=3))
    assert job.state.edit_to_judge is not None and len(job.state.edit_to_judge.rates) == 8
    found = verdict_on(job, windows(6, 1.5, seed=2))
    assert found is not None and found.verdict is EditVerdict.REGRESSED
    assert arrived((), windows(8)).state.edit_to_judge is not None, "what is measured while it starts counts, too"


def test_the_power_of_the_load_is_told_by_the_windows() -> None:
    by_load = [(load, 0.001 * load) for load in (1.0, 2.0, 4.0, 8.0) * 2]
    flat = [(load, 0.001) for load in (1.0, 2.0, 4.0, 8.0) * 2]
    for early, late, seconds in ((by_load, [(16.0, 0.016)] * 4, 0.016), (flat, [(16.0, 0.001)] * 4, 0.001)):
        found = at_like_load(early, late)
        assert math.log(found.after[0] / found.before[0]) == pytest.approx(0.0, abs=0.1), seconds


def test_equal_programs_are_hardly_ever_called_slower() -> None:
    """With loads that differ by a quarter, and windows that differ by 10%."""
    job, found = arrived(windows(8)), []
    assert job.state.edit is not None
    for seed in range(100):
        before, since = windows(8, noise=0.1, seed=seed), windows(24, load=5.0, noise=0.1, seed=1000 + seed)
        sides = {"rates": tuple(1.0 / one.seconds for one in before), "loads": tuple(one.load for one in before)}
        one = job.with_state(replace(job.state, edit=replace(job.state.edit, **sides)))
        looks = (verdict_on(one, since[:count]) for count in LOOKS)
        found.append(next(judged.verdict for judged in looks if judged is not None))
    assert found.count(EditVerdict.REGRESSED) <= 3 and found.count(EditVerdict.IMPROVED) <= 3
