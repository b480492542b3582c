"""What a fleet's moves teach it: verified moves of some jobs change what is predicted of others."""

from __future__ import annotations

import math

import pytest

from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.variation import Variation
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.evaluate.experience import MOST_COMPARISONS, fleet_experience
from rightpool.planning.job import Job
from tests.unit.planning.jobs import DAY, NOW, POOLS, changed, entry, find, fleet, plan, running

ONE = Placement("a100", 1, 1)


def moved(number: int, rate: float, outcome: Outcome = Outcome.VERIFIED, days: float = 0.0) -> Job:
    """A job that went from an A100 to an A10G, so many days ago."""
    past = entry(
        outcome,
        NOW - 1000.0 - number - days * DAY,
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
    )
    assert fleet_experience([running(ONE, 1.0, history=(resized,))], POOLS, NOW) == []
    assert MOST_COMPARISONS <= 5_000
