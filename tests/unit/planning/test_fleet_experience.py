"""What a fleet's moves teach it: verified moves of some jobs change what is predicted of others."""

from __future__ import annotations

from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.variation import Variation
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.evaluate.experience import MOST_COMPARISONS, fleet_experience
from rightpool.planning.job import Job
from tests.unit.planning.jobs import NOW, POOLS, changed, entry, find, fleet, plan, running

ONE = Placement("a100", 1, 1)


def moved(number: int, rate: float, outcome: Outcome = Outcome.VERIFIED) -> Job:
    """A job that went from an A100 to an A10G."""
    past = entry(
        outcome,
        NOW - 1000.0 - number,
        source=ONE,
        target=Placement("a10g", 1, 1),
        baseline_throughput=100.0,
        realised_throughput=rate,
    )
    return running(Placement("a10g", 1, 1), rate, f"moved-{number}", history=(past,))


def predicted(others: list[Job]) -> float:
    asked = running(ONE, 100.0)
    found = find(plan(fleet([asked, *others])).assessments[asked.key], "a10g", 1).throughput
    assert found is not None
    return found.median


def test_a_fleet_learns_from_its_moves() -> None:
    alone = predicted([])
    assert predicted([moved(number, 60.0) for number in range(10)]) > 1.3 * alone
    undone = predicted([moved(number, 60.0, Outcome.ROLLED_BACK) for number in range(10)])
    assert alone < undone < predicted([moved(number, 60.0) for number in range(10)])


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


def test_experience_is_of_other_chips_at_one_size_and_bounded() -> None:
    jobs = [moved(number, 50.0) for number in range(3)]
    assert len(fleet_experience(jobs, POOLS)) == 3
    assert fleet_experience(jobs, {"a100": POOLS["a100"]}) == []
    resized = entry(
        Outcome.VERIFIED,
        NOW,
        source=ONE,
        target=Placement("a10g", 4, 1),
        baseline_throughput=1.0,
        realised_throughput=2.0,
    )
    assert fleet_experience([running(ONE, 1.0, history=(resized,))], POOLS) == []
    assert MOST_COMPARISONS <= 5_000
