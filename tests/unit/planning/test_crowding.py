"""Jobs that slow each other on one pool: what is kept of it, what is predicted by it, and how they go there."""

from dataclasses import replace

import pytest

from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.outcome import JobSize, MoveOutcome
from rightpool.api.placement import Placement
from rightpool.planning.allocate.breaker import outcomes_of
from rightpool.planning.allocate.limits import FleetLimits
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.judge.crowding import Crowding, crowding
from rightpool.planning.offers.evidence import Doubling
from rightpool.planning.offers.intent import Intent
from rightpool.planning.work.fading import faded
from tests.unit.planning.jobs import AUTO, DAY, NOW, POOLS, THERE, auto_policy, entry, find, plan, running
from tests.unit.planning.test_fading import on


def outcome(in_use: int, ratio: float | None, doubt: float = 0.03, age: float = 600.0) -> MoveOutcome:
    """Of a move that has delivered."""
    at = NOW - age
    name = f"{in_use}-{ratio}-{age}"[:16]
    return MoveOutcome(name, "t", at - 600.0, at, JobSize.ONE_POD, False, ratio, doubt, in_use)


SLOW = {"a10g": (outcome(8, 1.0), outcome(8, 1.01), outcome(16, 0.87), outcome(16, 0.86))}


def test_a_pool_leaves_what_its_verdicts_show_at_its_use() -> None:
    found = crowding(SLOW, NOW)["a10g"]
    assert [found.at(chips) for chips in (0, 4, 8, 15)] == [1.0] * 4
    assert [found.at(chips) for chips in (16, 64)] == pytest.approx([0.87] * 2, abs=0.01)


@pytest.mark.parametrize(
    "outcomes", [(), (outcome(8, 1.0),), (outcome(8, 1.2),), (outcome(8, None),), (outcome(8, 0.9, doubt=0.9),)]
)
def test_what_is_as_predicted_or_may_be_chance_is_no_crowd(outcomes: tuple[MoveOutcome, ...]) -> None:
    assert crowding({"a10g": outcomes}, NOW) == {}


def test_a_verdict_counts_for_less_the_older_it_is() -> None:
    new, old = (crowding({"a10g": (outcome(8, 0.8, age=age),)}, NOW)["a10g"].at(8) for age in (600.0, 8.0 * DAY))
    assert new < 0.82 < 0.9 < old


def delivered(**fields: object) -> LedgerEntry:
    given = {"source_chip": "a", "target_chip": "a", "baseline_throughput": 100.0, "realised_throughput": 87.0}
    return entry(Outcome.VERIFIED, NOW - 60.0, **({"doubt": 0.05} | given | fields))


def test_a_pool_keeps_what_was_delivered_and_at_which_use() -> None:
    used, fuller = ({"a10g": replace(POOLS["a10g"], total=32, free=free)} for free in (20, 4))
    jobs = [running(history=(delivered(),))]
    kept = outcomes_of(jobs, {}, NOW, used)
    assert [(made.ratio, made.in_use) for made in kept["a10g"]] == [(0.87, 12)]
    assert outcomes_of(jobs, kept, NOW, fuller) == kept, "as it was at the verdict"
    again = tuple(MoveOutcome.from_dict(made.to_dict()) for made in kept["a10g"])
    assert again == tuple(replace(made, started_at=again[0].started_at) for made in kept["a10g"])


@pytest.mark.parametrize(
    "fields",
    [
        {"target_chip": "b"},
        {"source_chip": None, "target_chip": None},
        {"source": Placement("a100", 8, 1)},
        {"throttled": True},
        {"outcome": Outcome.ROLLED_BACK},
    ],
)
def test_what_comes_of_other_chips_or_sizes_or_of_a_fault_says_nothing_of_a_pool(
    fields: dict[str, object],
) -> None:
    kept = outcomes_of([running(history=(replace(delivered(), **fields),))], {}, NOW, POOLS)
    assert [(made.ratio, made.in_use) for made in kept["a10g"]] == [(None, 0)]


def begun(limits: FleetLimits, most: int = 20) -> int:
    """How many moves may begin, one after another."""
    for number in range(most):
        job = replace(running(name=str(number)), key=JobKey("ns", str(number)))
        if (limit := limits.limit_on(Intent.SAVE, job, THERE)) is not None:
            assert isinstance(limit, Doubling) and len(limit.text(NOW)) <= 160
            return number
        limits.admit(job, THERE, demanded=False)
    return most


@pytest.mark.parametrize(("free", "moves"), [(64, 2), (60, 2), (52, 3), (0, 16)])
def test_moves_at_most_double_what_is_in_use_of_a_pool(free: int, moves: int) -> None:
    pools = {"a10g": replace(POOLS["a10g"], total=64, free=free)}
    proven, policy = {"a10g": (outcome(8, 1.0),)}, auto_policy(maxConcurrentMigrations=50)
    assert begun(FleetLimits([], policy, NOW, outcomes=proven, pools=pools)) == moves


def test_where_jobs_slow_each_other_one_goes_after_another() -> None:
    pools = {"a10g": replace(POOLS["a10g"], total=64, free=32)}
    policy = auto_policy(maxConcurrentMigrations=50)
    assert begun(FleetLimits([], policy, NOW, outcomes=SLOW, pools=pools)) == 1
    less = {"a10g": replace(POOLS["a10g"], total=64, free=60)}
    assert begun(FleetLimits([], policy, NOW, outcomes=SLOW, pools=less)) == 2, "so few do not"


def test_who_comes_is_predicted_what_the_pool_leaves() -> None:
    job, pools = running(), POOLS | {"a10g": replace(POOLS["a10g"], total=64, free=48)}
    usual, slow = (
        find(plan(Fleet({job.key: job}, pools, AUTO, NOW, outcomes=outcomes)).assessments[job.key], "a10g", 4)
        for outcomes in ({}, SLOW)
    )
    assert usual.throughput is not None and slow.throughput is not None
    assert slow.throughput.median / usual.throughput.median == pytest.approx(0.87, abs=0.01)


def test_an_evaluation_is_not_kept_where_a_wanted_pool_leaves_less_now() -> None:
    job = running()
    first = plan(Fleet({job.key: job}, POOLS, AUTO, NOW))
    assert "a100" in {place.pool for place in first.evaluated[job.key].places}
    assert plan(Fleet({job.key: job}, POOLS, AUTO, NOW + 1.0), first).reused == 1
    assert plan(Fleet({job.key: job}, POOLS, AUTO, NOW + 1.0, outcomes={"a100": SLOW["a10g"]}), first).reused == 0


def test_who_was_there_before_the_others_has_lost_what_the_pool_leaves_now() -> None:
    jobs = on("a100", 740.0, 1000.0, 600.0)
    found = faded(jobs, NOW, {"a100": Crowding((16,), (0.87,)).at(16)}).jobs
    assert [round(found.get(job.key, 1.0), 2) for job in jobs] == [0.86, 1.0, 0.86]
