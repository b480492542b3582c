"""Waves: everything that a plan would do, in the order in which it can be done.

A plan says what is to be done now. What it does is carried out in thought, and the plan is made again: what waits for
chips that others leave comes in a later wave. So there is one planner, the operator's own, and nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Phase
from rightpool.api.revision import Revision
from rightpool.api.value_object import value_object
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.allocate.room import after_moves
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.moves.beginning import with_decision
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import MIGRATING_ACTIONS

# A fleet in which each wave makes room for one more would have as many as it has jobs.
_MOST: Final = 50


@value_object
class PlannedMove:
    """What the plan does with one job."""

    key: JobKey
    """The job's."""
    source: Revision | None
    """Where it is; None where it waits for its first place."""
    target: Revision
    """Where it goes."""
    rate: float | None
    """Units of work a second where it is, as measured; None where that is not known."""
    target_rate: float | None
    """The same where it goes, as predicted."""
    after: tuple[JobKey, ...] = ()
    """Jobs of earlier waves that leave chips of the pool that it goes to, where it had to wait for chips."""


Wave = tuple[PlannedMove, ...]
"""What can be done at once, by name."""


@value_object
class Foreseen:
    """Everything that a plan would do."""

    under_way: Wave
    """What is being done already."""
    waves: tuple[Wave, ...]
    """The first that can be made first."""
    held: Mapping[JobKey, Reason]
    """What holds each job that is not among them, after all of them."""


def foreseen(fleet: Fleet, planned: Callable[[Fleet], Plan]) -> Foreseen:
    """What the plan does, and what it does after that. planned: the plan of a fleet.

    A job is moved once: what it does where it goes is not measured, so that nothing more is decided on it. What is
    under way is taken to succeed.
    """
    found: list[Wave] = []
    held: dict[JobKey, Reason] = {}
    left: dict[str, list[JobKey]] = {}
    waited: set[JobKey] = set()
    moving = sorted(key for key, job in fleet.jobs.items() if _under_way(job))
    gone, under_way = set(moving), Wave()
    while len(found) < _MOST:
        assessments, wave, begun = planned(fleet).assessments, list[PlannedMove](), dict[JobKey, Job]()
        for key in sorted(assessments.keys() - gone):
            job, assessment = fleet.jobs[key], assessments[key]
            going = _going(job, assessment, fleet.now)
            if going is None:
                held[key] = assessment.decision.reason
                if assessment.fits and not any(assessment.fits):
                    waited.add(key)
                continue
            begun[key] = going
            wave.append(_move(job, going, assessment, left if key in waited else {}))
        leaving = [_move(fleet.jobs[key], fleet.jobs[key], assessments[key], {}) for key in moving]
        if not wave and not leaving:
            break
        found += [tuple(wave)] if wave else []
        under_way += tuple(leaving)
        gone |= begun.keys()
        for move in (*leaving, *wave):
            if move.source is not None:
                left.setdefault(move.source.placement.pool, []).append(move.key)
        fleet, moving = _carried_out(fleet, begun), []
    return Foreseen(under_way, tuple(found), {key: reason for key, reason in held.items() if key not in gone})


def _going(job: Job, assessment: Assessment, now: float) -> Job | None:
    """The job with what is begun of it; None where nothing is."""
    migration = job.state.migration
    if migration is not None:
        begins = migration.phase is Phase.PLANNED and not job.awaits_approval and assessment.waits_for is None
        return job if begins and not assessment.withdrawn else None
    if assessment.decision.action is not Action.START and assessment.decision.action not in MIGRATING_ACTIONS:
        return None
    made = with_decision(job, assessment, now, lambda *_: "")
    return None if made is job else made


def _move(job: Job, going: Job, assessment: Assessment, left: Mapping[str, list[JobKey]]) -> PlannedMove:
    target, migration, current = _target(going), going.state.migration, assessment.current
    candidate = assessment.decision.candidate
    predicted = migration.predicted if migration is not None else None if candidate is None else candidate.throughput
    return PlannedMove(
        key=job.key,
        source=job.state.revision,
        target=target,
        rate=None if current is None or current.throughput is None else current.throughput.median,
        target_rate=None if predicted is None else predicted.median,
        after=tuple(left.get(target.placement.pool, ())),
    )


def _target(going: Job) -> Revision:
    migration = going.state.migration
    revision = going.state.revision if migration is None else migration.target
    assert revision is not None
    return revision


def _carried_out(fleet: Fleet, begun: Mapping[JobKey, Job]) -> Fleet:
    """The fleet once these, and what was under way, are over."""
    moving = {key: job for key, job in fleet.jobs.items() if _under_way(job)} | dict(begun)
    pools, has = after_moves(fleet.pools, ((job, _target(job).placement) for job in moving.values()))
    there = {key: _there(job, has.get(key), fleet.now) for key, job in moving.items()}
    return replace(fleet, jobs={**fleet.jobs, **there}, pools=pools)


def _under_way(job: Job) -> bool:
    migration = job.state.migration
    return migration is not None and migration.phase is not Phase.PLANNED and not (job.stops or job.deleting)


def _there(job: Job, nodes: Mapping[str, int] | None, now: float) -> Job:
    """The job where it goes. nodes: chips that it has there."""
    target = replace(_target(job), since=now)
    each, pods = target.placement.chips_per_replica, target.placement.replicas
    found = None if nodes is None else {name: chips // each for name, chips in nodes.items()}
    child = RevisionState(target.revision, True, active=pods, running=pods, nodes=found)
    observed = job.observed._replace(profile=None, diagnosis=None, revisions={target.revision: child})
    return replace(job, state=replace(job.state, revision=target, migration=None), observed=observed)
