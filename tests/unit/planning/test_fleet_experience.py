"""What a fleet's moves teach it: verified moves of some jobs change what is predicted of others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.traits import ModelTraits
from rightpool.api.variation import Variation
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.books.chargeback import Chargeback, deleted_moves
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.experience import MOST_COMPARISONS, fleet_experience, measured_before
from rightpool.prediction.chip_model import Comparison
from rightpool.prediction.precision import HALF, PLAIN
from rightpool.reporting.chargeback_object import config_map, read_books
from tests.unit.planning.jobs import DAY, NOW, POOLS, changed, entry, find, fleet, plan, running

ONE = Placement("a100", 1, 1)


def moved(
    number: int,
    rate: float,
    outcome: Outcome = Outcome.VERIFIED,
    days: float = 0.0,
    work: tuple[float | None, float | None] = (1.0, 1.0),
    namespace: str = "ns",
) -> Job:
    """A job that went from an A100 to an A10G, so many days ago. work: the share of its step, before and after."""
    past = entry(
        outcome,
        NOW - 1000.0 - number - days * DAY,
        source=ONE,
        target=Placement("a10g", 1, 1),
        baseline_throughput=100.0,
        realised_throughput=rate,
        source_chip=POOLS["a100"].accelerator.key,
        target_chip=POOLS["a10g"].accelerator.key,
        source_work=work[0],
        target_work=work[1],
    )
    job = running(Placement("a10g", 1, 1), rate, f"moved-{number}", history=(past,))
    return changed(job, key=JobKey(namespace, f"moved-{number}"))


def predicted(others: list[Job], pools: Mapping[str, Pool] = POOLS) -> float:
    asked = running(ONE, 100.0)
    found = find(plan(fleet([asked, *others], pools)).assessments[asked.key], "a10g", 1).throughput
    assert found is not None
    return found.median


def test_a_fleet_learns_from_its_moves() -> None:
    alone = predicted([])
    assert predicted([moved(number, 60.0) for number in range(10)]) > 1.3 * alone
    undone = predicted([moved(number, 60.0, Outcome.ROLLED_BACK) for number in range(10)])
    assert alone < undone < predicted([moved(number, 60.0) for number in range(10)])


def test_what_waited_for_data_teaches_nothing_of_chips() -> None:
    """Jobs that wait 80% of the time on an A100 are as fast on an A10G, on which they wait less. A job that computes is
    slower there by what the chips are slower, however many of them were right to go."""
    alone = predicted([])
    blind = predicted([moved(number, 100.0, work=(None, None)) for number in range(10)])
    half = predicted([moved(number, 100.0, work=(0.2, None)) for number in range(10)])
    assert blind == half == alone
    seen = predicted([moved(number, 100.0, work=(0.2, 0.2 * 100.0 / alone)) for number in range(10)])
    assert seen == pytest.approx(alone, rel=0.05)


def test_a_namespace_is_one_witness() -> None:
    """However many moves it has, and whether it made them up."""
    honest = [moved(number, predicted([]), namespace=f"team-{number % 5}") for number in range(50)]
    before = predicted(honest)
    one = predicted([*honest, moved(100, 100.0, namespace="other")])
    many = predicted([*honest, *(moved(number, 100.0, namespace="other") for number in range(100, 300))])
    assert many == pytest.approx(one, rel=0.01)
    assert many < 1.15 * before


def test_a_pool_that_got_other_chips_inherits_nothing() -> None:
    """It was deleted, and declared anew under its name."""
    renewed = {**POOLS, "a10g": replace(POOLS["a10g"], accelerator=load_catalog().get("H100-SXM5-80GB"))}
    assert predicted([moved(number, 33.0) for number in range(10)], renewed) == predicted([], renewed)
    job, there = moved(0, 60.0), Placement("a10g", 1, 1)
    job = changed(running(ONE, 100.0), history=job.state.history)
    assert there in measured_before(job, NOW, POOLS) and there not in measured_before(job, NOW, renewed)


@pytest.mark.parametrize("outcome", [Outcome.VERIFIED, Outcome.ROLLED_BACK])
def test_what_a_fleet_has_seen_ages(outcome: Outcome) -> None:
    """The pool may have been throttled then, and been repaired since."""
    alone = predicted([])
    by_age = [predicted([moved(0, 5.0, outcome, days)]) for days in (0.0, 1.5, 5.0, 20.0, 60.0)]
    assert by_age == sorted(by_age) and by_age[-1] < alone
    assert math.log(alone / by_age[0]) > 2.0 * math.log(alone / by_age[-1])


def test_comparisons_of_like_age_are_weighed_together() -> None:
    """A posterior of as many groups as there are moves would cost minutes of processor time a day."""
    jobs = [moved(number, 50.0, days=number / 40.0) for number in range(400)]
    assert len({one.sd for one in fleet_experience(jobs, POOLS, NOW)}) <= 5


def test_what_others_have_shown_reaches_a_job_with_the_end_of_its_window() -> None:
    def there(made: Plan) -> float:
        found = find(made.assessments[asked.key], "a10g", 1).throughput
        assert found is not None
        return found.median

    asked, others = running(ONE, 100.0), [moved(number, 60.0) for number in range(10)]
    first = plan(fleet([asked]))
    kept = plan(fleet([asked, *others]), first)
    assert there(kept) == there(first)
    ended = changed(asked, variation=Variation(1, NOW, (100.0,)))
    assert there(plan(fleet([ended, *others]), kept)) > 1.3 * there(first)


def booked(jobs: list[Job]) -> Chargeback:
    """The books of these jobs' namespace, as they are read back."""
    books = Chargeback()
    for job in jobs:
        books.moves.book(job)
    return read_books(config_map("system", "ns", books, None))


def test_what_deleted_jobs_have_shown_is_not_lost() -> None:
    jobs = [moved(number, 60.0) for number in range(10)]
    asked = running(ONE, 100.0)
    gone = deleted_moves([booked(jobs)], {asked.uid}, MOST_COMPARISONS)
    found = find(plan(replace(fleet([asked]), deleted_moves=gone)).assessments[asked.key], "a10g", 1).throughput
    assert found is not None
    assert found.median == pytest.approx(predicted(jobs))


def test_a_move_counts_once_whether_its_job_is_there_or_not() -> None:
    jobs = [moved(number, 60.0, days=number) for number in range(6)]
    books = booked(jobs)
    known = fleet_experience(jobs, POOLS, NOW)
    for there in range(7):
        alive = jobs[:there]
        gone = deleted_moves([books], {job.uid for job in alive}, MOST_COMPARISONS)
        assert sorted(fleet_experience(alive, POOLS, NOW, gone), key=_order) == sorted(known, key=_order)


def _order(one: Comparison) -> tuple[float, ...]:
    return one.sd, *one.logs


def test_the_precision_of_a_deleted_job_is_kept() -> None:
    job = moved(0, 60.0)
    assert job.observed.profile is not None
    job = changed(job, profile=replace(job.observed.profile, traits=ModelTraits(precision="fp32")))
    books = Chargeback()
    books.moves.book(job)
    (past,) = job.state.history
    # What a move has lost may be known when nothing is measured any more, or after the precision was edited.
    edited = replace(job.observed.profile, traits=ModelTraits(precision="bf16"))
    for lost, later in ((90.0, None), (95.0, edited)):
        assert books.moves.book(changed(job, profile=later, history=(replace(past, lost_seconds=lost),)))
    (move,) = read_books(config_map("system", "ns", books, None)).moves
    assert move.precision == "fp32"
    both = {
        name: replace(pool, accelerator=replace(pool.accelerator, peak_flops={"bf16": 1e14, "fp32": 1e13}))
        for name, pool in POOLS.items()
    }
    kinds = [one.kind for one in fleet_experience([], both, NOW, [move, move._replace(precision=None)])]
    assert kinds == [PLAIN, HALF]


def test_the_newest_moves_of_deleted_jobs_count() -> None:
    books = [booked([moved(number, 60.0) for number in range(first, first + 5)]) for first in (0, 5)]
    assert [move.job for move in deleted_moves(books, (), 3)] == ["moved-0", "moved-1", "moved-2"]


def test_experience_is_of_other_chips_at_one_size_and_bounded() -> None:
    jobs = [moved(number, 50.0) for number in range(3)]
    assert len(fleet_experience(jobs, POOLS, NOW)) == 3
    assert fleet_experience(jobs, {"a100": POOLS["a100"]}, NOW) == []
    resized = entry(
        Outcome.VERIFIED,
        NOW,
        source=ONE,
        target=Placement("a10g", 4, 1),
        baseline_throughput=1.0,
        realised_throughput=2.0,
        source_chip=POOLS["a100"].accelerator.key,
        target_chip=POOLS["a10g"].accelerator.key,
        source_work=1.0,
        target_work=1.0,
    )
    assert fleet_experience([running(ONE, 1.0, history=(resized,))], POOLS, NOW) == []
    assert MOST_COMPARISONS <= 5_000
