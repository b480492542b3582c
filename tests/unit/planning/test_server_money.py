"""The money of a server's moves: its requests at home, with the replicas that its demand takes there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.account import Account
from rightpool.api.conditions import Reason
from rightpool.api.latency import Percentile
from rightpool.api.status import PlaceSize
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.books.accounting import accounted
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.jobs.sizing import Sizing
from rightpool.profiles.served import RequestTime
from tests.unit.planning.jobs import AUTO, NOW, changed
from tests.unit.planning.test_server_move import GOOD, SAME, holding, moving, seen, sides, step

LATER = NOW + 3660.0


def place(pool: str, servable: float, hours: float) -> PlaceSize:
    return PlaceSize(pool, 0.01, 0.001, 0.95, 4.0, 8.0, 0.1, 1.0, True, servable, 2, hours)


def sized(job: Job, peak: float) -> Job:
    ref = job.state.revision
    assert ref is not None
    sides = place("a100", 500.0, 1.0), place("l40s", 250.0, 2.0)
    return changed(
        job, sizing=Sizing({RequestTime.WHOLE: Percentile("p99", 0.99, 0.05)}, "a100/2", 1e5, peak, places=sides)
    )


def priced(job: Job) -> Job:
    """Eight dollars an hour a replica where it was, and one where it goes."""
    migration, ref = job.state.migration, job.state.revision
    assert migration is not None and ref is not None
    source = replace(migration.source, cost_per_hour=8.0 * migration.source.placement.replicas)
    target = replace(migration.target, cost_per_hour=1.0 * migration.target.placement.replicas)
    moved = replace(migration, source=source, target=target)
    return job.with_state(replace(job.state, revision=source, migration=moved, account=Account()))


def held(job: Job, **replicas: int) -> Job:
    """With pods that hold chips."""
    states = {
        int(name[1:]): RevisionState(int(name[1:]), True, active=count, running=count)
        for name, count in replicas.items()
    }
    return changed(job, revisions=states)


def verified(peak: float = 400.0) -> Job:
    """It has moved, and its hour is over."""
    job = sized(priced(holding()), peak)
    return seen(job, 1, now=LATER, sides=sides(GOOD, SAME))


def test_what_both_sides_cost_is_lost() -> None:
    job = sized(priced(moving(new=1, old=1)), 400.0)
    job = step(job, NOW)
    job = accounted(held(job, r1=1, r2=1), None, AUTO, NOW)
    assert job.state.account.saving_per_hour == pytest.approx(-1.0)
    assert job.state.account.settled(NOW + 3600.0).saved == pytest.approx(-1.0)


def test_it_saves_what_its_requests_would_cost_at_home() -> None:
    job = verified()
    there = job.state.account.counterfactual
    assert there is not None and (there.placement.pool, there.unit) == ("a100", WorkUnit.REQUESTS)
    busy = accounted(held(sized(job, 400.0), r2=2), None, AUTO, LATER)
    assert busy.state.account.saving_per_hour == pytest.approx(8.0 - 2.0), "one replica there, two here"


def test_a_busy_hour_takes_more_at_home_too() -> None:
    job = verified()
    spec = job.spec.workload.server
    assert spec is not None and spec.scale.most >= 1
    busy = accounted(held(sized(job, 400.0), r2=2), None, AUTO, LATER)
    again = accounted(held(sized(busy, 4000.0), r2=2), None, AUTO, LATER + 900.0)
    assert again.state.account.saving_per_hour == busy.state.account.saving_per_hour, "replicas.max is one"


def test_promise_and_result_are_of_the_same_week() -> None:
    entry = verified().state.history[-1]
    assert entry.realised_cost_per_million == pytest.approx(2.0, rel=1e-3), "two hours of a replica at a dollar"


def test_what_its_user_has_moved_saves_nothing() -> None:
    job = sized(priced(holding()), 400.0)
    migration = job.state.migration
    assert migration is not None
    target = replace(migration.target, generation=2)
    source = replace(migration.source, generation=1)
    asked = replace(migration, source=source, target=target, reason=Reason.PLACEMENT_DISALLOWED)
    job = job.with_state(replace(job.state, migration=asked))
    job = seen(job, 1, now=LATER, sides=sides(GOOD, SAME))
    assert job.state.migration is None and job.state.account.counterfactual is None
