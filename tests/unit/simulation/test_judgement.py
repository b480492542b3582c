"""What noise must not lead to, on a few jobs; `python -m benchmarks.decisions` measures how often on many."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from benchmarks.decisions.attainable import off
from benchmarks.decisions.edits import trial
from benchmarks.decisions.measures import row
from benchmarks.decisions.stories import (
    DAY,
    OFTEN,
    _back_within,
    _truly_saved,
    _worked,
    hangs,
    in_time,
    late,
    mixed,
    saving,
    slow_start,
)
from benchmarks.decisions.trace import Trace
from benchmarks.decisions.verdicts import RIGHT, WRONG, judged
from benchmarks.decisions.world import BEGAN, HOUR, Maker, pool, world
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.planning.judge.verdict import Verdict


@pytest.mark.parametrize("noise", ["blocks-10m", "evaluation"])
def test_a_right_move_is_made_and_kept(noise: str) -> None:
    # A price turns at half of that: long after the verdicts, so that nothing is undone for it.
    counts = saving(noise, 1, 2, hours=6.0)
    assert counts["false moves"][0][0] == 0
    assert counts["right moves made within 2 h"] == [(2, 2)]
    assert counts["right moves undone"][0][0] == 0


def test_a_program_that_hangs_where_it_was_moved_to_is_brought_back() -> None:
    """Whether it has begun there or not, and without the save that it can't make."""
    counts = hangs("quiet", 1, 2)
    assert counts["hanging jobs back within 2 h"] == [(2, 2)]
    for booked, lost in counts["lost where it hangs, booked"]:
        assert booked == pytest.approx(lost, rel=0.05) and lost > 5.0


@pytest.mark.parametrize("happens", ["evicted", "cheaper", "restart of the operator"])
def test_what_a_program_costs_that_hangs_after_its_first_steps_is_booked_whatever_happens(happens: str) -> None:
    """For half an hour its pods have no chips, their price falls, or the operator is started anew."""
    pools = [pool("base", "A100-SXM4-80GB", 3.00), pool("hangs", "A100-SXM4-80GB", 2.25)]
    job = Maker(1, "quiet", pools, DAY).job("base", 4, adaptation=OFTEN)
    usual = job.rate
    simulator, trace = world(pools), Trace()
    simulator.watch = trace
    job.rate = lambda place: (  # type: ignore[misc]
        0.0 if place.pool == "hangs" and _worked(job, place, simulator.now) >= 120.0 else usual(place)
    )
    job.saves = lambda place: place.pool != "hangs"
    simulator.add([job])
    simulator.run(BEGAN + 1.4 * HOUR)
    there, hangs = next(iter(job.children.values())), simulator.pools["hangs"]
    assert there.placement.pool == "hangs"
    free = hangs.free
    if happens == "evicted":
        there.release(hangs)
        there.bound_at, hangs.free = None, []
    elif happens == "cheaper":
        hangs.priced(1.00)
    simulator.run(BEGAN + 1.9 * HOUR)
    hangs.free = free
    if happens == "restart of the operator":
        simulator.restart_operator()
    simulator.run(BEGAN + 5.0 * HOUR)
    assert _back_within(trace, job, 2.2 * HOUR if happens == "evicted" else 1.3 * HOUR)
    job.rate = usual  # type: ignore[misc]
    saved = _truly_saved(simulator, job, Placement("base", 4, 1), 3.00)
    # After a restart its windows tell, of five minutes.
    assert job.job.state.account.settled(simulator.now).saved == pytest.approx(saved, abs=0.8)
    entry = job.job.state.history[-1]
    assert entry.cost == pytest.approx(-saved, abs=0.8)


@pytest.mark.parametrize("minutes", [15.0, 50.0])
def test_what_a_program_costs_that_hangs_again_and_again_is_booked_though_it_was_promised_to_work(
    minutes: float,
) -> None:
    """As where a watchdog ends it after a while: it works for two minutes then. Never is it silent for an hour."""
    pools = [pool("base", "A100-SXM4-80GB", 3.00), pool("hangs", "A100-SXM4-80GB", 2.25)]
    job = Maker(3, "quiet", pools, DAY).job("base", 4, adaptation=OFTEN)
    usual = job.rate
    simulator = world(pools)
    job.rate = lambda place: (  # type: ignore[misc]
        0.0
        if place.pool == "hangs" and _worked(job, place, simulator.now) % (60.0 * minutes) >= 120.0
        else usual(place)
    )
    simulator.add([job])
    simulator.run(BEGAN + 5.0 * HOUR)
    assert job.job.state.history[-1].outcome is Outcome.ROLLED_BACK
    job.rate = usual  # type: ignore[misc]
    saved = _truly_saved(simulator, job, Placement("base", 4, 1), 3.00)
    assert job.job.state.account.settled(simulator.now).saved == pytest.approx(saved, rel=0.05) and saved < -10.0


def test_what_hangs_where_the_job_once_was_loses_no_longer_than_since_it_has_left() -> None:
    """There it is compared with no other place. It has loaded for 20 minutes, and worked for one."""
    pools = [pool("base", "A100-SXM4-80GB", 3.00), pool("turns", "A100-SXM4-80GB", 2.25)]
    job = Maker(1, "quiet", pools, DAY).job("base", 4, adaptation=OFTEN)
    usual = job.rate
    simulator, trace = world(pools), Trace()
    simulator.watch = trace

    def works(place: Placement) -> bool:
        home_again = place.pool == "base" and simulator.now > BEGAN + 3.0 * HOUR
        return not home_again or 1200.0 <= _worked(job, place, simulator.now) < 1260.0

    job.rate = lambda place: usual(place) if works(place) else 0.0  # type: ignore[misc]
    simulator.add([job])
    simulator.run(BEGAN + 3.0 * HOUR)
    simulator.pools["turns"].priced(4.50)
    simulator.run(BEGAN + 5.0 * HOUR)
    entry, way = job.job.state.history[-1], trace.left[job.job.key]
    assert entry.hung and [moved.rolled_back for moved in way] == [False, False, True]
    assert entry.lost_seconds == pytest.approx(way[2].at - way[1].at, abs=180.0)


@pytest.mark.parametrize("minutes", [35.0, 50.0])
def test_a_program_that_loads_for_long_where_it_was_moved_to_is_judged_by_what_it_does_then(minutes: float) -> None:
    """Within the hour after which it is taken to hang. No whole window of it is measured in its first half hour."""
    pools = [pool("base", "A100-SXM4-80GB", 3.00), pool("better", "A100-SXM4-80GB", 2.25)]
    job = Maker(1, "quiet", pools, DAY).job("base", 4, adaptation=OFTEN)
    usual = job.rate
    simulator = world(pools)
    job.rate = lambda place: (  # type: ignore[misc]
        0.0 if place.pool == "better" and _worked(job, place, simulator.now) < 60.0 * minutes else usual(place)
    )
    simulator.add([job])
    simulator.run(BEGAN + 5.0 * HOUR)
    entry = job.job.state.history[-1]
    assert entry.outcome is Outcome.VERIFIED and entry.lost_seconds == pytest.approx(60.0 * minutes, abs=180.0)
    job.rate = usual  # type: ignore[misc]
    saved = _truly_saved(simulator, job, Placement("base", 4, 1), 3.00)
    assert job.job.state.account.settled(simulator.now).saved == pytest.approx(saved, abs=0.3)


def test_a_job_that_is_in_time_stays_and_one_that_is_late_is_moved() -> None:
    counts = in_time("blocks-10m", 1, 2, work=5.0, slacks=(0.30,))
    assert counts["moved for a deadline in time, slack 30%"] == [(0, 2)]
    assert late("blocks-10m", 1, 2, work=5.0)["true misses repaired in time"] == [(2, 2)]


def test_a_move_within_a_first_slow_start_saves_no_more_than_it_does() -> None:
    """Half as fast for 45 minutes wherever it starts; the price of another pool falls after 30 minutes of the first."""
    pools = [pool("base", "A100-SXM4-80GB", 3.00), pool("turns", "A100-SXM4-80GB", 3.00)]
    job = Maker(1, "quiet", pools, DAY).job("base", 4, adaptation=OFTEN)
    usual, cold = job.rate, 0.75 * HOUR
    full = usual(Placement("base", 4, 1))
    simulator = world(pools)
    job.rate = lambda place: usual(place) * (0.5 if _worked(job, place, simulator.now) < cold else 1.0)  # type: ignore[misc]
    simulator.add([job])
    simulator.run(BEGAN + 0.5 * HOUR)
    simulator.pools["turns"].priced(1.20)
    simulator.run(BEGAN + 8.0 * HOUR)
    there = job.job.state.account.counterfactual
    assert there is not None and there.speed == pytest.approx(1.0, abs=0.03)
    at_home = cold + (job.truth.done - 0.5 * cold * full) / full
    saved = 12.0 * at_home / HOUR - job.truth.spent
    # Nobody knew what the slow start of the move would cost.
    assert job.job.state.account.settled(simulator.now).saved == pytest.approx(saved + 12.0 * 0.375, rel=0.05)


def test_one_fleet_tells_how_surely_it_tells_its_saving() -> None:
    """A few large jobs make up most of it."""
    for measure, counts in mixed("quiet", 1, 4, hours=0.5).items():
        found = row("quiet", measure, counts)
        assert len(counts) == 4 and found.low < found.value < found.high


def test_what_a_job_could_not_have_done_at_home_counts_in_the_truth() -> None:
    """It would have taken longer there, and cost more, than the hours that have passed."""
    simulator = world([pool("base", "A100-SXM4-80GB", 3.00)])
    job = Maker(1, "quiet", list(simulator.pools.values()), 4.0).job("base", 4)
    simulator.now = BEGAN + 4.0 * HOUR
    usual = job.rate(Placement("base", 4, 1)) * 4.0 * HOUR
    for share in (0.5, 1.0, 1.5):
        job.truth.done = share * usual
        assert _truly_saved(simulator, job, Placement("base", 4, 1), 3.00) == pytest.approx(48.0 * share, rel=0.01)


def test_a_ratio_of_sums_is_within_its_interval() -> None:
    """A job for which next to nothing is to be saved counts by what it adds, not by a ratio of its own."""
    counts = [(40.0 + number % 3, 41.0) for number in range(12)]
    found = row("quiet", "saved", [*counts, (0.5, 0.001)])
    assert found.low < found.value < found.high and found.high - found.low < 0.05
    assert math.isnan(row("quiet", "saved", counts[:1]).low)
    json.dumps(asdict(row("quiet", "saved", [(np.float64(2.0), np.float64(3.0))] * 2)))  # sums of arrays, too


def test_of_quiet_jobs_a_verdict_undoes_the_wrong_moves_alone() -> None:
    for (price, speed), wrong in ((RIGHT, False), (WRONG, True)):
        undone, windows = judged([1000.0] * 12, [1000.0 * speed] * 24, price)
        assert undone is wrong and windows <= 3


def test_what_neighbours_do_later_where_a_job_was_is_not_known_to_any_account() -> None:
    """A day has eight turns of a neighbour that takes 25% for a third of the time: its mean is off by 3%, of which a
    saving of 15% makes six times as much."""
    assert off(np.random.default_rng(1), 200) == pytest.approx(0.2, abs=0.03)


def test_a_right_move_of_a_job_that_starts_slowly_is_kept() -> None:
    counts = slow_start("quiet", 1, 2)
    assert counts["moves of slow starters made"] == [(2, 2)]
    assert counts["moves of slow starters undone"] == [(0, 2)]


@pytest.mark.parametrize("noise", ["blocks-10m", "ar-60m"])
def test_an_edit_that_changes_nothing_is_hardly_ever_called_slower_or_faster(noise: str) -> None:
    """Batch means alone called 5 and 11 of 100 slower."""
    verdicts = [trial(np.random.default_rng([3, number]), noise, 8, 1.0) for number in range(20)]
    assert verdicts.count(Verdict.WORSE) <= 1 and verdicts.count(Verdict.BETTER) <= 1


@pytest.mark.parametrize(("noise", "history"), [("quiet", 3), ("white", 8)])
def test_an_edit_that_makes_a_job_slower_is_found(noise: str, history: int) -> None:
    verdicts = [trial(np.random.default_rng([3, number]), noise, history, 0.85) for number in range(10)]
    assert verdicts == [Verdict.WORSE] * 10
