"""What the requests of a server would cost without its moves: at home, with the replicas that its demand takes there.

Both sides of a move are paid while it goes on, and count as what it costs.
"""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.counterfactual import Counterfactual
from rightpool.api.migration import Migration, Phase
from rightpool.api.units import HOUR
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.books.counterfactual import READINGS
from rightpool.planning.jobs.job import Job
from rightpool.planning.work.server import replicas_for
from rightpool.prediction.cost import MILLION

_BOTH: frozenset[Phase] = frozenset({Phase.SURGING, Phase.SHARING, Phase.HOLDING})


def served_elsewhere(job: Job) -> float | None:
    """Dollars an hour that its requests of now would cost without its moves; None where it is there, or its user has
    moved it."""
    there, migration = job.state.account.counterfactual, job.state.migration
    if there is not None and there.unit is WorkUnit.REQUESTS:
        if there.cost_per_hour is None:
            return None
        home = there.placement.replicas
        return there.cost_per_hour / home * replicas_for(job, there.baseline, home)
    moves = migration is not None and migration.phase in _BOTH and migration.promises and not migration.demanded
    return migration.source.cost_per_hour if moves and migration is not None else None


def moved_server(job: Job, migration: Migration, now: float) -> Job:
    """The job where its move has brought it, and what that is compared with from now on: where it was before the first
    move that its user did not ask for."""
    account, sizing, source = job.state.account, job.observed.sizing, migration.source
    there = account.counterfactual
    if there is None:
        size = None if sizing is None else sizing.at(source.placement.pool)
        there = Counterfactual(
            source.placement,
            source.cost_per_hour,
            speed=1.0,
            readings=len(READINGS),
            unit=WorkUnit.REQUESTS,
            baseline=None if size is None or size.servable <= 0.0 else size.servable,
        )
    back = migration.demanded or there.placement.pool == migration.target.placement.pool
    account = account.moved(None if back or there.baseline is None else there, now)
    return job.with_state(replace(job.state, revision=migration.target, account=account))


def realised_requests(job: Job, migration: Migration) -> float | None:
    """Requests a second that share the dollars of the target, as its batches were timed there; None where they were
    not. So what was promised and what came of it are of the same week."""
    target, sizing = migration.target, job.observed.sizing
    size = None if sizing is None else sizing.at(target.placement.pool)
    if size is None or not size.measured or not size.hours:
        return None
    return target.placement.replicas * MILLION / HOUR / size.hours
