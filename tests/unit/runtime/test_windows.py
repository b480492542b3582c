"""When a job's profile is recomputed, and when it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from threading import Semaphore
from typing import Any

import pytest

from benchmarks.made_fleet import snapshot
from rightpool.planning.jobs import revision_window
from rightpool.planning.jobs.job import NOT_OBSERVED, Job
from rightpool.planning.jobs.revision_window import KEPT_WINDOWS, REBUILD_SECONDS
from rightpool.profiles.profile import Profile, build_profile
from rightpool.profiles.sample import Field, Sample
from rightpool.runtime.observe.facts import PodFacts
from rightpool.runtime.observe.windows import RevisionWindows
from rightpool.telemetry.reader import Target, TelemetryReading
from tests.patience import PATIENCE
from tests.unit.planning.jobs import changed

INTERVAL = 10.0
SLOW_CYCLE = 15.0  # beside the interval, seconds that a slow cycle takes
FULL = 40  # readings: more than the window of five minutes holds


class Source:
    """Returns the readings in `now`."""

    def __init__(self) -> None:
        self.now: dict[Field, float] = {}

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        return TelemetryReading({target.key: Sample(now, self.now) for target in targets})


class LateSource(Source):
    """Answers when it is asked to, the newest readings eight seconds old."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = Semaphore(0)

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        self.answers.acquire(timeout=PATIENCE)
        return super().read(targets, now - 8.0)

    def answer(self, windows: RevisionWindows) -> None:
        """The answer has arrived; the next cycle takes it."""
        self.answers.release()
        assert windows._reading is not None
        windows._reading.result(PATIENCE)


class Watched:
    """One job that is read every ten seconds."""

    def __init__(self) -> None:
        fleet = snapshot(1)
        [job] = fleet.jobs.values()
        self.job: Job = changed(job, profile=None)
        assert job.state.revision is not None
        self.accelerator = fleet.pools[job.state.revision.placement.pool].accelerator
        self.source = Source()
        self.windows = RevisionWindows(self.source, patience=10.0)
        self.now = fleet.now
        self.replicas = job.state.revision.placement.replicas

    def read(self, rate: float, busy: float = 0.7, **more: float) -> Profile:
        self.now += INTERVAL
        self.source.now = {
            Field.PODS: self.replicas,
            Field.STEPS: self.now,
            Field.STEP_SECONDS: 64.0 / rate,
            Field.SAMPLES_PER_SECOND: rate,
            Field.CHIP_BUSY: busy,
            **{Field[name]: value for name, value in more.items()},
        }
        self.windows.refresh([self.job], _pods, self.now)
        profile = self.windows.of(self.job, self.accelerator, self.now).profile
        assert profile is not None
        return profile


def _pods(job: Job, number: int) -> list[PodFacts]:
    pod = PodFacts("p", "ml", "p", job.key.name, number, "j", False, True, False, "10.0.0.1", "n", (), None, None)
    return [pod]


@pytest.fixture
def watched() -> Watched:
    made = Watched()
    for _ in range(FULL):
        made.read(1000.0)
    return made


def test_a_reading_in_the_expected_range_keeps_the_profile(watched: Watched) -> None:
    before = watched.read(1000.0)
    assert before.complete
    assert all(watched.read(rate) is before for rate in (1001.0, 999.0) * 20)


def test_after_a_first_save_no_more_profiles_are_made_than_before(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[float] = []

    def counted(*arguments: Any, **named: Any) -> Profile:
        made.append(named["now"])
        return build_profile(*arguments, **named)

    monkeypatch.setattr(revision_window, "build_profile", counted)
    saved = watched.now
    before = watched.read(1000.0, CHECKPOINT_TIMESTAMP=saved)
    assert all(watched.read(1000.0, CHECKPOINT_TIMESTAMP=saved) is before for _ in range(FULL))
    assert len(made) <= 1 + FULL * INTERVAL / (0.5 * REBUILD_SECONDS)


def test_another_speed_updates_the_profile_at_once(watched: Watched) -> None:
    before = watched.read(1000.0)
    after = [watched.read(500.0) for _ in range(3)][-1]
    assert after is not before
    mean = after.value(Field.SAMPLES_PER_SECOND)
    assert mean is not None and 850.0 < mean < 975.0, "three of thirty readings"


def test_a_missing_pod_updates_the_profile_at_once(watched: Watched) -> None:
    watched.replicas -= 1
    assert watched.read(1000.0).pods == watched.replicas


def test_a_drift_updates_the_profile_within_a_window(watched: Watched) -> None:
    before = watched.read(1000.0)
    for step in range(FULL):
        after = watched.read(1000.0 + step)
    assert after.value(Field.SAMPLES_PER_SECOND) == pytest.approx(1000.0 + FULL / 2, rel=0.03)
    assert after is not before
    assert REBUILD_SECONDS < FULL * INTERVAL


def test_a_profile_without_new_readings_becomes_stale(watched: Watched) -> None:
    watched.read(1000.0)
    watched.now += 10 * INTERVAL
    stale = watched.windows.of(watched.job, watched.accelerator, watched.now).profile
    assert stale is not None and not stale.complete


def test_an_answer_that_takes_a_cycle_is_no_silence_of_the_job() -> None:
    """Answers for a large fleet on a busy machine arrive after the cycle that asked for them."""
    watched = Watched()
    profiling = watched.job.spec.profiling.model_copy(update={"window": timedelta(seconds=60.0)})
    watched.job = changed(watched.job, spec=watched.job.spec.model_copy(update={"profiling": profiling}))
    late = LateSource()
    watched.source, watched.windows.reader, watched.windows.patience = late, late, 0.0
    for _ in range(FULL):
        profile = watched.read(1000.0)
        late.answer(watched.windows)
        watched.now += SLOW_CYCLE
    assert profile.complete
    watched.now += 200.0
    silent = watched.windows.of(watched.job, watched.accelerator, watched.now).profile
    assert silent is not None and not silent.complete, "no answer since"


def test_readings_older_than_the_window_are_dropped(watched: Watched) -> None:
    for _ in range(3 * FULL):
        profile = watched.read(1000.0)
    [feed] = watched.windows._feeds.values()
    assert profile.window < (len(feed.window.window) - 1) * INTERVAL <= KEPT_WINDOWS * profile.window
    assert profile.complete


def test_what_a_job_says_anew_counts_at_once(watched: Watched) -> None:
    """How often it is read, and which Revision it is."""
    profiling = watched.job.spec.profiling.model_copy(update={"interval": timedelta(seconds=30.0)})
    watched.job = changed(watched.job, spec=watched.job.spec.model_copy(update={"profiling": profiling}))
    [feed] = watched.windows._feeds.values()
    began, reads = watched.now, set()
    for _ in range(6):
        watched.read(1000.0)
        reads.add(feed.requested_at)
    assert reads == {began, began + 30.0, began + 60.0}
    revision = watched.job.state.revision
    assert revision is not None
    moved = changed(watched.job, revision=replace(revision, revision=2))
    assert watched.windows.of(moved, watched.accelerator, watched.now) == NOT_OBSERVED
    watched.now += 30.0
    watched.windows.refresh([moved], _pods, watched.now)
    [feed] = watched.windows._feeds.values()
    assert (feed.window.key.revision, feed.requested_at) == (2, watched.now)
    assert watched.windows.of(watched.job, watched.accelerator, watched.now) == NOT_OBSERVED
    watched.windows.refresh([], _pods, watched.now)
    assert not watched.windows._feeds
