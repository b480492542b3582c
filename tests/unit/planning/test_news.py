"""What is news of a job, and what is measured a little differently."""

from dataclasses import replace

import pytest

from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.news import LOOK_SECONDS, PROGRESS_SECONDS, look_until, taken_over
from rightpool.profiles.steadiness import FIRST_KEPT, counted
from tests.unit.planning.jobs import NOW, changed, running, spec


def measured(*rates: float, job: Job | None = None) -> Job:
    """A job of which these windows of five minutes were counted."""
    job, variation = job or STORED, None
    assert job.state.revision is not None
    for number, rate in enumerate(rates):
        variation = counted(variation, job.state.revision.revision, rate, NOW + 300.0 * number, 300.0)
    return changed(job, variation=variation)


STORED = running()
COUNTED = replace(STORED, state=replace(STORED.state, variation=counted(None, 1, 1000.0, NOW + 1e6, 300.0)))
BEFORE = [1000.0 + number % 3 for number in range(12)]


def is_news(before: Job, now: Job) -> bool:
    kept = taken_over(before, now)
    assert kept is before or kept is now
    return kept is now


def test_the_same_seen_again_is_no_news() -> None:
    assert not is_news(STORED, replace(STORED))
    assert not is_news(STORED, changed(STORED, checkpoint_at=NOW)), "saves without a move are counted by nobody"


@pytest.mark.parametrize(
    "now",
    [
        running(generation=2),
        running(workload_hash="new"),
        running(profile=None),
        running(invalid="no"),
        running(finished="Completed"),
        changed(STORED, pool_problem="gone"),
        changed(STORED, error="KeyError: 1"),
        changed(STORED, revisions={1: RevisionState(1, True, active=1, running=0)}),
    ],
)
def test_what_matters_is_seen(now: Job) -> None:
    assert is_news(STORED, now)


def test_a_window_that_says_what_the_windows_before_said_is_no_news() -> None:
    before = measured(*BEFORE, job=COUNTED)
    assert not is_news(before, measured(*BEFORE, 1001.0, job=COUNTED))
    assert is_news(before, measured(*BEFORE, 1500.0, job=COUNTED)), "another rate"
    assert is_news(before, COUNTED), "no rate"
    sure, rough = [1000.0] * 48, [rate for rate in (1400.0, 600.0, 1400.0, 1000.0) for _ in range(12)]
    assert is_news(measured(*sure), measured(*rough)), "another doubt"


def test_small_changes_add_up_to_one_that_counts() -> None:
    """What a job is compared with is what it was taken over as, and not what it was in the cycle before."""
    rates, kept, news = list(BEFORE), measured(*BEFORE, job=COUNTED), 0
    for number in range(24):
        rates.append(1000.0 * 1.004**number)
        now = measured(*rates, job=COUNTED)
        news += is_news(kept, now)
        kept = taken_over(kept, now)
    assert 0 < news < 12


def test_windows_that_are_worth_storing_are_news() -> None:
    few, enough = [1000.0] * int(FIRST_KEPT), [1000.0] * int(FIRST_KEPT + 2)
    assert is_news(measured(*few), measured(*enough))


def test_of_a_job_under_way_every_window_is_news() -> None:
    stopped = running(made=spec(suspend=True))
    assert is_news(measured(*BEFORE, job=stopped), measured(*BEFORE, 1001.0, job=stopped))
    assert not is_news(measured(*BEFORE, job=stopped), measured(*BEFORE, job=stopped))


def test_a_job_is_looked_at_from_time_to_time_sooner_where_its_progress_is_shown() -> None:
    ends = {look_until(running(uid=str(number)), NOW) - NOW for number in range(20)}
    assert len(ends) == 20
    assert LOOK_SECONDS / 2 <= min(ends) < max(ends) <= LOOK_SECONDS
    counted = running(made=spec(progress={"totalSamples": 10**9}))
    assert look_until(counted, NOW) <= NOW + PROGRESS_SECONDS
