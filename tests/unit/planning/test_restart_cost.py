"""What a restart costs a job that starts slowly: each second that is lost counts once."""

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.interruption import Interruption
from rightpool.api.ledger import Outcome
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.revision import Revision
from rightpool.api.variation import SlowStart, Variation
from rightpool.planning.books.accounting import accounted
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.training import Training
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.track import Track
from tests.unit.planning.jobs import FOUR, NOW, changed, entry, running, spec

START = 60.0
SLOW = SlowStart(2700.0, 1350.0, 1)
"""Half as fast for three quarters of an hour."""


def moved(repeats: float, mode: str, action: Action = Action.MOVE, outcome: Outcome = Outcome.VERIFIED) -> Job:
    """A job of one unit a second that has caught up with so many seconds of work after a move to where it is."""
    since = NOW + START
    job = changed(
        running(made=spec(checkpoint={"mode": mode})),
        revision=Revision(1, FOUR, "h", created_at=NOW, cost_per_hour=8.0, since=since),
        history=(entry(outcome, NOW + 1.0, action=action, target=FOUR),),
        interruption=Interruption("d-1", NOW, repeats=round(repeats)),
        variation=Variation(1, NOW, slow_start=SLOW),
        track=Track(),
    )
    at, done = since, 0.0
    while job.state.interruption is not None:
        assert job.observed.track is not None
        job.observed.track.add(Sample(at, {Field.SAMPLES: done, Field.PODS: 1.0}), 1)
        job = accounted(job, None, PlacementPolicySpec(), at)
        at += 10.0
        done += 10.0 * (0.5 if at <= since + SLOW.seconds else 1.0)
    return job


@pytest.mark.parametrize("minutes", [2.0, 8.0, 14.0, 50.0])
@pytest.mark.parametrize(("mode", "action"), [("None", Action.MOVE), ("Signal", Action.START)])
def test_what_is_missing_while_it_repeats_what_no_save_held_counts_once(
    minutes: float, mode: str, action: Action
) -> None:
    job = moved(60.0 * minutes, mode, action)
    assert Training().restart_seconds(job) == pytest.approx(START + 60.0 * minutes + SLOW.lost_seconds, abs=15.0)


@pytest.mark.parametrize("realised", [0.0, 60.0])
def test_what_hung_does_not_tell_how_long_a_restart_takes(realised: float) -> None:
    earlier = entry(Outcome.VERIFIED, NOW - 7200.0, lost_seconds=90.0)
    last = entry(Outcome.ROLLED_BACK, NOW, lost_seconds=4000.0, realised_throughput=realised)
    job = changed(running(made=spec()), history=(earlier, last))
    assert Training().restart_seconds(job) == (2000.0 if realised else 90.0)


def interrupted(counts: float, silent: float) -> Job:
    """After two hours of a Revision that is to do an hour's work again, has counted for so many seconds, and then the
    same count until it was silent."""
    since = NOW + START
    job = changed(
        running(made=spec()),
        revision=Revision(1, FOUR, "h", created_at=NOW, cost_per_hour=8.0, since=since),
        history=(entry(Outcome.VERIFIED, NOW + 1.0, target=FOUR),),
        interruption=Interruption("d-1", NOW, repeats=3600),
        track=Track(),
    )
    for second in range(0, 7200, 10):
        assert job.observed.track is not None
        if second <= silent:
            count = min(float(second), counts)
            job.observed.track.add(Sample(since + second, {Field.SAMPLES: count, Field.PODS: 1.0}), 1)
        job = accounted(job, None, PlacementPolicySpec(), since + second)
    return job


@pytest.mark.parametrize(("counts", "silent"), [(0.0, 7200.0), (0.0, -1.0), (600.0, 600.0), (600.0, 7200.0)])
def test_a_pause_ends_with_the_last_step_that_was_counted(counts: float, silent: float) -> None:
    """Where nothing was, with the start: what came after that is not known."""
    job = interrupted(counts, silent)
    assert job.state.interruption is None
    assert job.state.history[-1].lost_seconds == pytest.approx(START + counts, abs=10.0)


def test_a_pause_lasts_while_steps_are_counted() -> None:
    job = interrupted(7200.0, 7200.0)
    assert job.state.history[-1].lost_seconds == pytest.approx(START + 3600.0, abs=10.0)


def test_a_job_that_saves_before_it_leaves_has_all_of_its_slow_start_before_it() -> None:
    job = moved(1.0, "Signal")
    assert Training().restart_seconds(job) == pytest.approx(START + SLOW.lost_seconds, abs=15.0)
    # It takes long to load what it has saved, and is not slow for that.
    slow = replace(job.state.history[0], lost_seconds=900.0)
    assert Training().restart_seconds(changed(job, history=(slow,))) == 900.0 + SLOW.lost_seconds


def test_of_two_ways_it_is_not_known_how_long_each_took() -> None:
    job = moved(600.0, "None", outcome=Outcome.ROLLED_BACK)
    assert Training().restart_seconds(job) == job.state.history[0].lost_seconds / 2.0 + SLOW.lost_seconds


def test_no_more_of_a_slow_start_is_saved_than_there_is() -> None:
    job = moved(600.0, "None")
    long = replace(job.state.history[0], lost_seconds=2.0 * SLOW.seconds)
    assert Training().restart_seconds(changed(job, history=(long,))) == 2.0 * SLOW.seconds


def test_a_pause_of_an_earlier_revision_says_nothing_of_this_ones_start() -> None:
    """It was started anew where it is since: how much it did again then is not known."""
    job = moved(600.0, "None")
    revision, last = job.state.revision, job.state.history[0]
    assert revision is not None and Training().restart_seconds(job) < last.lost_seconds + SLOW.lost_seconds
    earlier = replace(last, started_at=revision.created_at + 100.0)
    assert Training().restart_seconds(changed(job, history=(earlier,))) == last.lost_seconds + SLOW.lost_seconds
