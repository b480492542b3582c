"""A pool that has become slower since its jobs were verified there."""

from collections.abc import Iterable
from dataclasses import replace
from statistics import fmean

import pytest

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.units import DAY
from rightpool.planning.books.counterfactual import taken_since
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.work.fading import faded
from tests.unit.planning.jobs import NOW, POOLS, changed, entry, find, fleet, plan, running
from tests.unit.planning.world import variation

CHIP = "A100-SXM4-80GB"
CAME = Placement("a10g", 4, 1)


def on(pool: str, *rates: float) -> list[Job]:
    """Jobs that were verified there at 1,000 and did that until an hour ago, by what they do since."""
    made: list[Job] = []
    for rate in rates:
        seen = replace(variation(1, 1000.0, NOW, windows=24), recent=(1000.0,) * 12 + (rate,) * 12)
        job = running(rate=rate, variation=seen)
        here = job.state.revision
        assert here is not None
        place = replace(here.placement, pool=pool)
        arrived = entry(
            Outcome.VERIFIED, NOW, source=CAME, target=place, baseline_throughput=1000.0, realised_throughput=1000.0
        )
        state = replace(job.state, revision=replace(here, placement=place), history=(arrived,))
        made.append(replace(job, key=JobKey("team", f"{pool}-{len(made)}"), state=state))
    return made


def shares(jobs: Iterable[Job]) -> list[float]:
    jobs = list(jobs)
    found = faded(jobs, NOW).jobs
    return [round(found.get(job.key, 1.0), 2) for job in jobs]


def test_what_all_jobs_of_a_pool_lose_is_the_pools() -> None:
    assert shares(on("a100", 600.0, 590.0, 610.0)) == [0.82, 0.82, 0.82]


@pytest.mark.parametrize("rates", [(600.0, 590.0), (600.0, 1000.0, 1000.0), (1200.0, 1210.0, 1190.0)])
def test_a_few_jobs_and_what_one_loses_and_what_they_win_tell_nothing(rates: tuple[float, ...]) -> None:
    assert set(shares(on("a100", *rates))) == {1.0}


def test_a_little_that_few_jobs_lose_alike_may_be_chance() -> None:
    assert set(shares(on("a100", 880.0, 870.0, 890.0))) == {1.0}
    assert shares(on("a100", *(880.0, 870.0, 890.0) * 4))[0] < 1.0


def test_what_a_look_in_each_cycle_finds_by_chance_once_a_day_is_no_pools() -> None:
    """Their mean is 4 standard deviations from none."""
    assert set(shares(on("a100", 800.0, 900.0, 850.0, 780.0, 920.0, 860.0))) == {1.0}


def test_what_jobs_elsewhere_lose_as_well_is_no_pools() -> None:
    jobs = [*on("a100", 600.0, 590.0, 610.0), *on("h100", 600.0, 595.0, 605.0)]
    assert set(shares(jobs)) == {1.0}


@pytest.mark.parametrize("doubt", [0.02, 0.2], ids=["measured well", "measured badly"])
def test_home_would_do_what_the_pool_has_taken_however_badly_its_move_was_measured(doubt: float) -> None:
    jobs = [
        changed(job, history=(replace(job.state.history[0], doubt=doubt),)) for job in on("a100", 600.0, 590.0, 610.0)
    ]
    steady = []
    for job in jobs:
        seen = job.observed.variation
        assert seen is not None
        steady.append(changed(job, variation=replace(seen, recent=(fmean(seen.recent),) * 24)))
    pools = {place: replace(POOLS["a100"], name=place) for place in ("a100", CAME.pool)}
    key = jobs[0].key
    kept, lost = (find(plan(fleet(of, pools)).assessments[key], CAME.pool, 4).throughput for of in (steady, jobs))
    assert kept is not None and lost is not None
    assert lost.median == pytest.approx(kept.median / faded(jobs, NOW).jobs[key], rel=0.02)


def test_what_jobs_lose_each_at_its_own_time_is_no_pools() -> None:
    jobs = on("a100", 600.0, 1000.0, 1000.0, 1000.0)
    slow = [job.observed.variation for job in jobs]
    assert all(seen is not None for seen in slow)
    steady = [
        replace(job, observed=job.observed._replace(variation=replace(seen, recent=(800.0,) * 24)))
        for job, seen in zip(jobs, slow, strict=True)
        if seen is not None
    ]
    assert set(shares([*jobs[:1], *steady[1:]])) == {1.0}


def left(pool: str, *ratios: float, chips: tuple[str, str] = (CHIP, CHIP)) -> list[Job]:
    """Jobs that have left the pool for another one, by what they did there ÷ what they do since."""
    made = []
    for number, ratio in enumerate(ratios):
        job = running(rate=1000.0)
        here = job.state.revision
        assert here is not None
        place = replace(here.placement, pool="home")
        moved = entry(
            Outcome.VERIFIED,
            NOW,
            source=replace(place, pool=pool),
            target=place,
            baseline_throughput=1000.0 * ratio,
            realised_throughput=1000.0,
            source_chip=chips[0],
            target_chip=chips[1],
            doubt=0.2,
        )
        state = replace(job.state, revision=replace(here, placement=place), history=(moved,))
        made.append(replace(job, key=JobKey("team", f"left-{number}"), state=state))
    return made


def test_who_comes_finds_what_those_have_lost_that_are_there() -> None:
    assert faded(on("a100", 600.0, 590.0, 610.0), NOW).pools == {"a100": pytest.approx(0.82, abs=0.01)}


def test_who_comes_finds_what_those_have_lost_that_have_left() -> None:
    assert faded(left("cheap", 0.6, 0.7, 0.65), NOW).pools == {"cheap": pytest.approx(0.65, abs=0.02)}


@pytest.mark.parametrize(
    "ratios", [(0.6, 0.7), (0.6, 1.2, 1.0), (1.3, 1.4, 1.35)], ids=["too few", "by chance", "none"]
)
def test_two_that_left_and_what_one_lost_and_what_they_won_keep_nobody_away(ratios: tuple[float, ...]) -> None:
    assert faded(left("cheap", *ratios), NOW).pools == {}


def test_what_other_chips_do_and_what_was_a_day_ago_keeps_nobody_away() -> None:
    assert faded(left("cheap", 0.6, 0.7, 0.65, chips=(CHIP, "A10G-24GB")), NOW).pools == {}
    assert faded(left("cheap", 0.6, 0.7, 0.65), NOW + 1.1 * DAY).pools == {}


def test_a_job_that_has_just_left_does_not_go_back_by_its_own_measurement_alone() -> None:
    """Its own move says that it lost 5%, give or take 20%; all four say a third."""
    jobs = left("cheap", 0.95, 0.6, 0.7, 0.65)
    pools = {place: replace(POOLS["a100"], name=place) for place in ("home", "cheap")}
    alone, among = (
        find(plan(fleet(of, pools)).assessments[jobs[0].key], "cheap", 4).throughput for of in (jobs[:1], jobs)
    )
    assert alone is not None and among is not None
    assert alone.median > 950.0 and among.median < 0.9 * alone.median


@pytest.mark.parametrize(
    ("predicted", "counted"), [(1.0, 0.7), (None, 0.875)], ids=["by what was promised", "by what was measured alone"]
)
def test_what_a_measured_speed_tells_of_a_pool_counts_once(predicted: float | None, counted: float) -> None:
    """At the verdict the job did 1,000 units a second, in the two hours after its move 800 in the mean, now 700."""
    job = on("a100", 700.0)[0]
    there = Counterfactual(CAME, 4.0, since=NOW - 7200.0, speed=1.0, rate=800.0, predicted=predicted, faded=0.7)
    assert taken_since(job, there) == pytest.approx(counted)
    assert taken_since(job, replace(there, faded=1.0)) == 1.0
