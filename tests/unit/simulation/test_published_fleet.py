"""The fleet of a published simulator, against what was published of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.fleet.application import Application, applications
from benchmarks.fleet.deadlines import Deadlines
from benchmarks.fleet.exact import fixed
from benchmarks.fleet.operated import operated
from benchmarks.fleet.published import CLUSTER
from benchmarks.fleet.tiers import PLACES
from benchmarks.fleet.views import ModelView, true_rates
from benchmarks.fleet.work import BestBatch, OwnBatch
from rightpool.api.placement import Placement
from rightpool.simulation.rounds import RoundJob, play


@pytest.fixture(scope="module")
def folder() -> Path:
    shared = os.environ.get("RIGHTPOOL_SHARED")
    found = Path(shared or "") / "data" / "sia"
    if shared is None or not found.is_dir():
        pytest.skip("RIGHTPOOL_SHARED does not name a folder with data/sia")
    return found


@pytest.fixture(scope="module")
def known(folder: Path) -> dict[str, Application]:
    return applications(folder)


def test_jobs_on_fixed_placements_end_at_the_second_that_was_published(
    folder: Path, known: dict[str, Application]
) -> None:
    exact = fixed(folder, known)
    assert (exact.jobs, exact.off) == (80, 0)


def test_the_whole_operator_plays_a_trace_on_the_nodes_that_there_are(known: dict[str, Application]) -> None:
    """Jobs start, grow when they are measured and others end, and hold no node's chips twice."""
    decide = operated()
    jobs = [RoundJob(f"job-{number}", 60 * number, BestBatch(known["cifar10"])) for number in range(12)]

    def watched(now: int, there: Sequence[RoundJob], changed: bool) -> Mapping[str, Placement | None]:
        given = decide(now, there, changed)
        for name, pool in decide.pools.items():
            held = sum(place.chips for place in given.values() if place is not None and place.pool == name)
            assert min(pool.free) >= 0 and sum(pool.free) == CLUSTER[name].total - held
        return given

    play(jobs, {name: kind.total for name, kind in CLUSTER.items()}, watched)
    assert all(job.done is not None for job in jobs)
    assert any(job.restarts for job in jobs)


def test_a_job_is_known_on_one_chip_then_by_its_own_steps_on_twice_as_many(known: dict[str, Application]) -> None:
    """As Sia knows it; jobs that have a model together know what the others have seen."""
    application = known["cifar10"]
    job = RoundJob("one", 0, OwnBatch(application))
    possible = [place for place in PLACES if place in application.places]

    def judged(view: ModelView, of: RoundJob) -> set[int]:
        return {place.chips for place, rate in zip(possible, view(of).rates, strict=True) if rate > 0.0}

    assert judged(ModelView(), job) == {1}
    job.put(Placement("aws", 2, 1))
    job.live(0, 120)
    assert judged(ModelView(doubling=True), job) == {1, 2, 4}
    assert max(judged(ModelView(), job)) > 4
    assert isinstance(job.work, OwnBatch)
    later = OwnBatch(application, models=job.work.models, gradients=job.work.gradients)
    assert max(judged(ModelView(), RoundJob("two", 0, later))) > 4


def test_time_is_worth_more_where_only_what_costs_more_is_in_time(known: dict[str, Application]) -> None:
    application = known["cifar10"]
    job = RoundJob("one", 0, BestBatch(application))
    view, prices = true_rates(job), np.array([CLUSTER[place.pool].price * place.chips for place in application.places])
    soon, later = (
        Deadlines({"one": factor * float(view.left.min())}).value(job, 0, view, prices, None) for factor in (2.0, 50.0)
    )
    assert soon > later
    assert Deadlines({"one": 100.0, "two": 100.0}).late({"one": 105, "two": 106}) == 0.5
