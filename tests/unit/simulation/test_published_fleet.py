"""The fleet of a published simulator, against what was published of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks.fleet.application import Application, applications
from benchmarks.fleet.exact import fixed
from benchmarks.fleet.operated import operated
from benchmarks.fleet.published import CLUSTER
from benchmarks.fleet.work import BestBatch
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
