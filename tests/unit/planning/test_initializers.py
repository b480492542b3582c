"""A job whose first step fetches data: its pods with chips are made when that has ended, and so the deadline counts."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.migration import Phase
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.arrival import LONGEST_WAIT_SECONDS
from tests.unit.planning.jobs import AUTO, NOW, changed
from tests.unit.planning.test_only_watched import step
from tests.unit.planning.test_users_word import RUNS, moving

FETCHES = replace(RUNS, revision=2, active=1, others=1, running=0, on_nodes=0)
WAITS = replace(FETCHES, others=0)
DEADLINE = AUTO.start_deadline.total_seconds()


def after(job: Job, seconds: float, seen: RevisionState) -> Job:
    return step(changed(job, revisions={2: seen}), NOW + seconds)


def test_while_data_is_fetched_nothing_is_late() -> None:
    job = moving(Phase.STARTING, FETCHES, stopped_at=NOW)
    at = 0.0
    while at < 4.0 * DEADLINE:
        at += 60.0
        job = after(job, at, FETCHES)
        migration = job.state.migration
        assert migration is not None and not migration.rolling_back
    began = migration.phase_since
    assert after(job, at + 0.4 * DEADLINE, WAITS).state.migration == migration, "half of it is left at least"
    late = after(job, began - NOW + DEADLINE + 1.0, WAITS).state.migration
    assert late is not None and late.rolling_back


def test_it_is_not_fetched_for_ever_nor_where_pods_can_not_be_made() -> None:
    job = moving(Phase.STARTING, FETCHES, stopped_at=NOW)
    blocked = replace(FETCHES, blocked="exceeded quota", unmade=True)
    for seconds, seen in ((LONGEST_WAIT_SECONDS + 1.0, FETCHES), (DEADLINE + 1.0, blocked)):
        migration = after(job, seconds, seen).state.migration
        assert migration is not None and migration.rolling_back
