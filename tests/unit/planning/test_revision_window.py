"""What a window shows while it fills: a new object only where it says something new."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rightpool.planning.jobs.job import Observed
from rightpool.planning.jobs.revision_window import RevisionWindow
from rightpool.planning.work.outlook import pace_of
from rightpool.profiles.profile import Steadiness
from rightpool.profiles.sample import Field, Sample
from rightpool.profiles.steadiness import pace, variance_of_difference
from rightpool.profiles.track import SPACING
from tests.unit.planning.jobs import NOW, running

INTERVAL = 10.0


def seen(rates: list[float], hot: float = 0.0) -> Iterator[Observed]:
    """What is observed after each reading of these samples a second. hot: below that a fault throttles the chips."""
    job = running()
    window = RevisionWindow.of(job, 1)
    for number, rate in enumerate(rates):
        at = NOW + INTERVAL * number
        values = {
            Field.STEPS: 1000.0 + 20.0 * number,
            Field.SAMPLES: 64.0 * (1000.0 + 20.0 * number),
            Field.SAMPLES_PER_SECOND: rate,
            Field.STEP_SECONDS: 0.5,
            Field.CHIP_BUSY: 0.4,
            Field.PODS: 1.0,
            Field.THROTTLE: 1.0 if rate < hot else 0.0,
            Field.CLOCK: 0.5,
        }
        window.append(Sample(at, values))
        yield window.observe(job, None, at)


def test_a_window_that_fills_and_says_the_same_is_looked_at_once() -> None:
    """After a start all windows of a fleet fill. Each reading would have every job judged anew, for the same words."""
    window = running().spec.profiling.window.total_seconds()
    filling = list(seen([128.0 + 0.1 * (number % 3) for number in range(int(window / INTERVAL))]))
    profiles = [one.profile for one in filling if one.profile is not None]
    warming = [one for one in profiles if one.steadiness is Steadiness.WARMING_UP]
    assert len(warming) > 5 and not any(one.complete for one in warming)
    assert all(one is warming[0] for one in warming[1:])
    assert profiles[-1].complete, "that it is full is new"


def test_a_window_that_fills_tells_of_what_has_moved() -> None:
    steady, *_, moved = seen([128.0] * 4 + [256.0] * 8)
    assert steady.profile is not None and moved.profile is not None
    assert not moved.profile.complete
    before, after = (one.value(Field.SAMPLES_PER_SECOND) for one in (steady.profile, moved.profile))
    assert before is not None and after is not None and after > 1.5 * before


def test_it_is_known_until_when_a_fault_throttled_the_chips() -> None:
    *_, last = seen([128.0] * 40 + [64.0] * 40 + [128.0] * 60, hot=100.0)
    window = running().spec.profiling.window.total_seconds()
    assert last.track is not None
    repaired = NOW + INTERVAL * 80
    assert repaired <= last.track.throttled_at <= repaired + window / 2 + INTERVAL
    assert last.track.throttled_at <= last.track.healthy_since <= last.track.throttled_at + SPACING
    assert last.track.mean(last.track.healthy_since, NOW + INTERVAL * 139) == pytest.approx(64.0 * 2.0)
    *_, never = seen([128.0] * 80)
    assert never.track is not None and never.track.healthy_since == never.track.began


def test_windows_with_a_fault_are_not_mixed_with_those_without() -> None:
    """Five windows, then five of which a fault throttles the chips, then five after the repair."""
    each = 5 * int(running().spec.profiling.window.total_seconds() / INTERVAL)
    shown = list(seen([128.0] * each + [64.0] * each + [128.0] * each, hot=100.0))
    hot, repaired = (pace(shown[at].variation, 1) for at in (2 * each - 1, 3 * each - 1))
    assert hot is not None and hot.rate < 0.6 * 128.0, "one window may have met the beginning of the fault"
    assert repaired is not None and repaired.rate == pytest.approx(128.0, rel=0.05)
    assert 3 <= repaired.windows <= 5
    assert variance_of_difference(shown[-1].variation, 1)[0] < 0.01, "a fault is no noise of the job's own"


def test_a_fault_that_no_whole_window_has_shown_yet_is_no_past_of_the_job() -> None:
    """What it does now is what its newest readings say."""
    window = int(running().spec.profiling.window.total_seconds() / INTERVAL)
    job = running()
    *_, now = seen([128.0] * 5 * window + [64.0] * (2 * window // 3), hot=100.0)
    assert now.variation is not None and not now.variation.throttled
    rate, doubt = pace_of(replace(job, observed=now))
    assert rate < 110.0 and doubt > 0.1
