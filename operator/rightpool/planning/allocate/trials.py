"""Which trials may begin: those that pay the most for their chips, on chips that are free and that nobody waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import MIGRATING_ACTIONS
from rightpool.planning.offers.evaluated import MeasuredJob
from rightpool.planning.offers.trial import TrialOffer, trial_offers

SHARE_OF_FREE: Final = 0.25
"""Of the chips of a pool that no job has, those that trials may have at once."""
_WAIT: Final = frozenset({Reason.WAITING_FOR_CAPACITY, Reason.WAITING_FOR_OLDER_JOB, Reason.OUTBID})


def awaited_pools(fleet: Fleet, assessments: Mapping[JobKey, Assessment]) -> frozenset[str]:
    """Pools that some job waits for chips of. No trial begins there, and one that is under way ends."""
    found: set[str] = set()
    for key, assessment in assessments.items():
        evaluated, job = assessment.evaluated, fleet.jobs[key]
        if evaluated is not None and assessment.decision.reason in _WAIT:
            found.update(place.pool for place in evaluated.places)
        found.update(place.pool for place in _pending(job))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Trials:
    """What trials begin in one cycle, and the memory of how."""

    begin: Mapping[JobKey, TrialOffer]
    """At most one a job."""
    offered: Mapping[JobKey, tuple[MeasuredJob, Sequence[TrialOffer]]] = field(repr=False)
    """All that pay, by job, with what they were taken from: good for as long as that."""


def trials(
    fleet: Fleet,
    assessments: Mapping[JobKey, Assessment],
    longest: Mapping[JobKey, float],
    held: Mapping[str, int],
    previous: Trials | None = None,
) -> Trials:
    """The trials of a cycle. longest: seconds that may be measured, of each job that lets its program be tried and has
    no trial; held: chips of each pool that trials have; previous: of the last cycle, with the same `longest`."""
    known = {} if previous is None else previous.offered
    offered: dict[JobKey, tuple[MeasuredJob, Sequence[TrialOffer]]] = {}
    for key, seconds in longest.items():
        evaluated = assessments[key].evaluated if key in assessments else None
        if isinstance(evaluated, MeasuredJob):
            before = known.get(key)
            same = before is not None and before[0] is evaluated
            offered[key] = before if before is not None and same else (evaluated, trial_offers(evaluated, seconds))
    ranked = [(-offer.gain, key, offer) for key, (_, offers) in offered.items() for offer in offers]
    return Trials(_begun(fleet, assessments, sorted(ranked), held) if ranked else {}, offered)


def _begun(
    fleet: Fleet,
    assessments: Mapping[JobKey, Assessment],
    ranked: Sequence[tuple[float, JobKey, TrialOffer]],
    held: Mapping[str, int],
) -> dict[JobKey, TrialOffer]:
    """Those that find chips, by what they gain."""
    awaited = awaited_pools(fleet, assessments)
    room = Room({name: replace(pool, growable=0) for name, pool in fleet.pools.items()}, fleet.jobs.values())
    for key, assessment in assessments.items():
        decision = assessment.decision
        if decision.target is not None and (decision.action is Action.START or decision.action in MIGRATING_ACTIONS):
            room.take(fleet.jobs[key], decision.target)
    taken, found = dict(held), dict[JobKey, TrialOffer]()
    for _, key, offer in ranked:
        place, used = offer.placement, taken.get(offer.placement.pool, 0)
        allowed = SHARE_OF_FREE * (fleet.pools[place.pool].free + held.get(place.pool, 0))
        if key in found or place.pool in awaited or used + place.chips > allowed:
            continue
        beside = _beside(fleet.jobs[key])
        if room.fits(beside, (place,))[0]:
            room.take(beside, place)
            taken[place.pool], found[key] = used + place.chips, offer
    return found


def _pending(job: Job) -> list[Placement]:
    """Where it has pods that find no chips."""
    refs = [job.state.revision, job.state.migration and job.state.migration.target]
    return [ref.placement for ref in refs if ref and job.revision(ref.revision).unschedulable_since is not None]


def _beside(job: Job) -> Job:
    """The job's program without what the job has: the chips of a trial are beside its own."""
    return altered(job, key=JobKey(job.key.namespace, f"{job.key.name} on trial"), state=JobState())
