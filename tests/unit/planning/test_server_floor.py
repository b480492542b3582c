"""A server with a target has as many replicas as its record asks for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rightpool.api.conditions import Reason
from rightpool.api.latency import Percentile
from rightpool.api.migration import Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.jobs.sizing import UNHELD, Servable, Sizing
from rightpool.planning.moves.commands import EnsureRevision, commands
from rightpool.planning.offers.servers.floor import floor_now
from rightpool.planning.offers.servers.recorded import (
    line_through,
    outdated,
    recorded_sizing,
    week_picture,
    with_servable,
)
from rightpool.planning.work.registry import work_of
from rightpool.prediction.columns import Floats
from rightpool.prediction.server import LoadLine
from rightpool.profiles.demand import DAY, SLOT
from rightpool.profiles.loads import Points
from rightpool.profiles.served import RequestTime
from tests.unit.planning.jobs import NOW, changed, spec
from tests.unit.planning.test_surge import TEMPLATE, edited, server, step

P99 = Percentile("p99", 0.99, 0.080)
LIMITS = {RequestTime.WHOLE: P99}
LINE = LoadLine(0.010, 0.001, (1e-3, 1e-3, 0.0), 32.0, 32.0)
POINTS = Points(np.array([1.0, 4.0, 16.0]), np.array([0.011, 0.014, 0.026]), np.array([9.0, 9.0, 9.0]))
HOURLY = 240  # slots
KNOWN = Sizing(LIMITS, "a100/2", 7 * 86_400.0, 1000.0, "▁█", LINE, Servable(300.0, 400.0, 0.93))


def targeted(sizing: Sizing | None, least: int = 2, most: int = 8, now: int = 2) -> Job:
    """With as many replicas as there are now."""
    workload = {
        "chipsPerReplica": 2,
        "replicas": {"min": least, "max": most},
        "port": 8000,
        "metrics": {"port": 8002},
        "template": TEMPLATE,
    }
    targets = {"latency": {"p99": "80ms"}}
    made = spec(workload={"server": workload}, elasticity={}, checkpoint={}, progress=None, targets=targets)
    job = replace(server(), spec=made)
    ref = job.state.revision
    assert ref is not None
    here = replace(ref.placement, replicas=now, chips=2 * now)
    ref = replace(ref, placement=here, requested_replicas=least, requested_chips=2 * least)
    job = job.with_state(replace(job.state, revision=ref))
    return changed(job, sizing=sizing, revisions={1: RevisionState(1, True, active=now, running=now)})


def replicas(job: Job) -> int:
    after = step(job)
    assert after.state.revision is not None
    return after.state.revision.placement.replicas


def test_it_has_as_many_as_the_peak_needs() -> None:
    job = step(targeted(KNOWN))
    ref = job.state.revision
    assert ref is not None
    assert (ref.revision, ref.placement.replicas, ref.placement.chips) == (1, 4, 8)
    (command,) = (one for one in commands(job) if isinstance(one, EnsureRevision))
    assert command.ref.placement.replicas == 4
    assert not job.state.history, "it is scaled where it is"


@pytest.mark.parametrize(("peak", "expected"), [(10.0, 2), (90_000.0, 8)], ids=["fewer", "more"])
def test_its_user_bounds_it(peak: float, expected: int) -> None:
    assert replicas(targeted(replace(KNOWN, peak=peak), now=4)) == expected


def test_where_nothing_tells_it_has_as_many_as_it_has() -> None:
    assert replicas(targeted(None, now=5)) == 5
    assert replicas(targeted(replace(KNOWN, servable=None), now=5)) == 5


def test_too_short_a_record_gives_as_many_as_its_user_wants_at_least() -> None:
    assert replicas(targeted(replace(KNOWN, peak=None, recorded=600.0, servable=None), now=5)) == 2


def test_hours_of_which_nothing_is_known_give_none_up() -> None:
    """As where the page of its metrics is gone for hours."""
    assert replicas(targeted(replace(KNOWN, peak=None), now=5)) == 5


def test_where_nobody_asks_its_users_least_answers() -> None:
    silent = targeted(replace(KNOWN, peak=0.0, week="▁▁", line=None, servable=None), now=5)
    assert replicas(silent) == 2
    assert work_of(silent.spec).unplanned(silent) is Reason.NO_REQUESTS


def test_none_is_given_up_that_would_hardly_be_spared() -> None:
    assert replicas(targeted(replace(KNOWN, peak=899.0), now=4)) == 4, "three would take 900 at most"
    assert replicas(targeted(replace(KNOWN, peak=850.0), now=4)) == 3
    assert replicas(targeted(replace(KNOWN, peak=901.0), now=3)) == 4, "up at once"


def test_a_limit_that_nothing_keeps_leaves_room() -> None:
    rate = UNHELD * LINE.capacity
    assert replicas(targeted(replace(KNOWN, servable=Servable(0.0, 0.0, 0.2)))) == math.ceil(1000.0 / rate)


def test_an_edit_comes_up_with_as_many_as_there_are() -> None:
    job = step(step(edited(targeted(KNOWN, now=4))))
    assert job.state.migration is not None and job.state.migration.phase is Phase.SURGING
    assert job.state.migration.target.placement.replicas == 4


# --- the record ------------------------------------------------------------------------------------------------------


def week(rate: float = 100.0) -> Floats:
    return np.full(7 * DAY, rate * SLOT)


def test_the_floor_is_for_the_same_hours_of_the_week() -> None:
    counts = week()
    counts[-3 * DAY + HOURLY - 1] = 9000.0  # three days ago, in the hour that comes
    assert floor_now(counts) == 600.0
    counts = week()
    counts[-3 * DAY + HOURLY] = 9000.0
    assert floor_now(counts) == 100.0


def test_the_floor_goes_down_an_hour_after_it_might() -> None:
    counts = week()
    counts[-2 * HOURLY] = 9000.0
    assert floor_now(counts) == 600.0
    counts = week()
    counts[-2 * HOURLY - 1] = 9000.0
    assert floor_now(counts) == 100.0


def test_a_gap_is_no_quiet_time() -> None:
    counts = week()
    counts[-3 * HOURLY :] = math.nan
    assert floor_now(counts) == 100.0, "other days know these hours"
    day = counts[-DAY // 2 :]
    assert floor_now(day) is None
    found = recorded_sizing(day, POINTS, P99, "a100/2", NOW)
    assert (found.peak, found.silent) == (None, False)
    assert recorded_sizing(week(0.0), None, P99, "a100/2", NOW).silent


def test_the_record_and_the_line_tell_what_a_replica_can_take() -> None:
    noisy = np.random.default_rng(1).poisson(week(1000.0)).astype(float)
    sizing = with_servable(recorded_sizing(noisy, POINTS, LIMITS, "a100/1", NOW), noisy)
    assert sizing.recorded == 7 * 86_400.0
    assert sizing.peak == pytest.approx(1000.0, rel=0.05)
    assert sizing.line is not None and sizing.servable is not None
    assert sizing.line.most == 24.0, "half as full again as the fullest that was seen"
    assert 0.3 * sizing.line.capacity < sizing.servable.at_least < sizing.servable.at_most <= sizing.line.capacity
    assert sizing.servable.chance >= 0.9
    alone = with_servable(recorded_sizing(noisy / 50.0, POINTS, LIMITS, "a100/1", NOW), noisy / 50.0)
    assert alone.servable is not None
    assert alone.servable.at_least == pytest.approx(sizing.servable.at_least, rel=0.25), "it is not what comes in"


def test_less_than_an_hour_tells_nothing() -> None:
    counts = np.full(7 * DAY, np.nan)
    counts[-100:] = 15.0
    sizing = recorded_sizing(counts, POINTS, LIMITS, "a100/1", NOW)
    assert (sizing.peak, sizing.recorded) == (None, 1500.0)
    assert with_servable(sizing, counts) is sizing


def test_a_server_that_takes_one_at_a_time_is_not_taken_to_batch() -> None:
    line = line_through(Points(np.array([1.0]), np.array([0.010]), np.array([20.0])))
    assert line.most == 1.0
    assert line.capacity == pytest.approx(100.0, rel=0.02)


def test_a_limit_below_one_request_is_too_slow() -> None:
    sizing = replace(KNOWN, targets={RequestTime.WHOLE: Percentile("p99", 0.99, 0.005)})
    assert sizing.too_slow and not KNOWN.too_slow


def test_what_was_replayed_holds_until_something_is_new() -> None:
    assert not outdated(KNOWN, KNOWN)
    assert outdated(replace(KNOWN, place="l4/2"), KNOWN)
    assert outdated(replace(KNOWN, targets={RequestTime.WHOLE: Percentile("p95", 0.95, 0.080)}), KNOWN)
    assert outdated(KNOWN, replace(KNOWN, servable=None))
    slower = replace(LINE, fixed=2 * LINE.fixed, each=2 * LINE.each)
    assert outdated(replace(KNOWN, line=slower), KNOWN)


def test_small_changes_are_none() -> None:
    assert KNOWN.same_as(replace(KNOWN, peak=1010.0, recorded=KNOWN.recorded + 60.0))
    assert not KNOWN.same_as(replace(KNOWN, peak=1100.0))
    assert not KNOWN.same_as(replace(KNOWN, servable=Servable(290.0, 400.0, 0.93)))


def test_the_week_is_a_row_of_bars() -> None:
    counts = week(10.0)
    counts[: 2 * DAY] = np.nan
    counts[5 * DAY : 5 * DAY + 20] = 80.0 * SLOT
    picture = week_picture(counts, 20_000 * 86_400.0)
    assert picture == "·" * 16 + "▁" * 24 + "█" + "▁" * 15
    assert week_picture(np.full(7 * DAY, np.nan), NOW) == ""
