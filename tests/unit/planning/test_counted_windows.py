"""When the windows of jobs are counted of which a process that starts hears at once."""

import itertools
from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.variation import Variation
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_window import RevisionWindow
from rightpool.profiles.sample import Field, Sample
from tests.unit.planning.jobs import NOW, changed, running

WINDOW = running().spec.profiling.window.total_seconds()
INTERVAL = 10.0


def sample(number: int) -> Sample:
    """One that comes so many intervals after the first one."""
    steps = 20.0 * number
    values = {
        Field.STEPS: steps,
        Field.SAMPLES: 64 * steps,
        Field.SAMPLES_PER_SECOND: 128.0,
        Field.STEP_SECONDS: 0.5,
        Field.PODS: 1.0,
    }
    return Sample(NOW + INTERVAL * number, values)


def counted_at(job: Job, seconds: float) -> list[float]:
    """Seconds at which windows were counted, of a job whose samples come every ten."""
    assert job.state.revision is not None
    window = RevisionWindow.of(job, job.state.revision.revision)
    found: list[float] = []
    for number in range(int(seconds / INTERVAL)):
        at = NOW + INTERVAL * number
        window.append(sample(number))
        seen = window.observe(job, None, at).variation
        if seen is not None and (not found or seen.as_of > NOW + found[-1]):
            found.append(seen.as_of - NOW)
    return found


def test_windows_of_a_fleet_are_not_counted_in_the_same_cycle() -> None:
    """All statuses of a fleet of ten thousand would be made anew in it."""
    fleet = [counted_at(replace(running(), uid=f"uid-{number}"), 6 * WINDOW) for number in range(40)]
    assert len({first for first, *_ in fleet}) == 1, "nobody waits for the first one"
    seconds = [second for _, second, *_ in fleet]
    assert max(seconds.count(at) for at in set(seconds)) <= 8
    for times in fleet:
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert WINDOW <= gaps[0] <= 2 * WINDOW + INTERVAL
        assert set(gaps[1:]) == {WINDOW}, "each in turn, and none twice"


def test_a_move_is_judged_without_delay() -> None:
    job = running()
    here = job.state.revision
    assert here is not None
    under_way = Migration("d-1", Action.MOVE, Phase.VERIFYING, here, here, NOW, NOW, Reason.MOVING, "m")
    times = counted_at(changed(job, migration=under_way), 4 * WINDOW)
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {WINDOW}


@pytest.mark.parametrize("factor", [0.5, 4.0])
def test_windows_are_as_long_as_an_edit_makes_them(factor: float) -> None:
    job = running()
    assert job.state.revision is not None
    profiling = job.spec.profiling.model_copy(update={"window": job.spec.profiling.window * factor})
    edited = replace(job, spec=job.spec.model_copy(update={"profiling": profiling}))
    window = RevisionWindow.of(job, job.state.revision.revision)
    numbers = itertools.count()

    def lives(of: Job, windows: float) -> Variation:
        for number in itertools.islice(numbers, int(windows * WINDOW / INTERVAL)):
            window.append(sample(number))
            seen = window.observe(of, None, NOW + INTERVAL * number).variation
        assert seen is not None
        return seen

    before = lives(job, 6.0)
    assert len(before.recent) > 2 and before.spans
    profile = window.observe(edited, None, NOW + 6.0 * WINDOW).profile
    assert profile is not None and profile.window == factor * WINDOW, "without another sample"
    after = lives(edited, 2.0 * INTERVAL / WINDOW)
    assert (after.spans, len(after.recent) <= 1) == ((), True), "at once, not with the next window"
    after = lives(edited, 4.0 * factor)
    assert 3 <= len(after.recent) <= 5 and after.window_seconds == factor * WINDOW
    begun = RevisionWindow.of(edited.with_state(replace(edited.state, variation=before)), 1)
    assert begun.variation is not None and not begun.variation.recent
