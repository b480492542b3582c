"""Which trials may begin: those that pay the most for their chips, on chips that are free and that nobody waits for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.state import JobState
from rightpool.api.trial_request import TrialRequest
from rightpool.api.trials_day import TrialsDay
from rightpool.api.units import HOUR
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.decision import MIGRATING_ACTIONS
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.trial import TrialOffer
from rightpool.planning.offers.trial_asked import answers, paying
from rightpool.planning.offers.trial_asked_texts import beyond_dollars_of_all, no_chips
from rightpool.planning.offers.trial_consent import NO_TRIAL, Trying, affordable, chip_cost, trial_seconds

SHARE_OF_FREE: Final = 0.25
"""Of the chips of a pool that no job has, those that trials may have at once."""
_WAIT: Final = frozenset({Reason.WAITING_FOR_CAPACITY, Reason.WAITING_FOR_OLDER_JOB, Reason.OUTBID})


def who_waits(fleet: Fleet, assessments: Mapping[JobKey, Assessment]) -> dict[str, set[JobKey]]:
    """Who waits for chips of each pool. No trial of another job begins there, and one that is under way ends."""
    found: dict[str, set[JobKey]] = {}
    for key, assessment in assessments.items():
        evaluated, job = assessment.evaluated, fleet.jobs[key]
        if job.on_trial:
            continue
        wanted = evaluated.places if evaluated is not None and assessment.decision.reason in _WAIT else ()
        for place in (*wanted, *_pending(job)):
            found.setdefault(place.pool, set()).add(key)
    return found


def others_wait(waiting: Mapping[str, Set[JobKey]], pool: str, key: JobKey) -> bool:
    """Whether any other job waits for chips of the pool. What a job wishes itself is what its trial is for."""
    return not waiting.get(pool, frozenset()) <= {key}


@dataclass(frozen=True, slots=True)
class Trials:
    """What trials begin in one cycle, and the memory of how."""

    begin: Mapping[JobKey, TrialOffer]
    """At most one a job."""
    offered: Mapping[JobKey, tuple[Evaluated, Sequence[TrialOffer]]] = field(repr=False)
    """All that pay, by job, with what they were taken from: good for as long as that."""
    ends: frozenset[JobKey] = frozenset()
    """Jobs whose trials end, since somebody waits for their chips."""
    refused: Mapping[JobKey, str] = field(default_factory=dict)
    """Why those do not begin that users ask for."""

    def of(self, key: JobKey) -> Trying:
        """What they say of one job."""
        offer, ends, refused = self.begin.get(key), key in self.ends, self.refused.get(key, "")
        return NO_TRIAL if offer is None and not ends and not refused else Trying(offer, ends, refused)


def planned_trials(fleet: Fleet, assessments: Mapping[JobKey, Assessment], previous: Trials | None) -> Trials | None:
    """The trials of a cycle, of the jobs that let their programs be tried; None where none does. previous: of the last
    cycle."""
    asking = {key: job for key, job in fleet.jobs.items() if job.spec.trial is not None}
    requests = {key: request for key, job in fleet.jobs.items() if (request := job.trial_asked) is not None}
    if not asking and not requests:
        return None
    under_way = {key: job.state.trial for key, job in asking.items() if job.state.trial is not None}
    waiting = who_waits(fleet, assessments) if under_way else {}
    revisions = [job.state.revision for job in fleet.jobs.values() if job.on_trial]
    held = [revision.placement for revision in revisions if revision is not None]
    longest = {key: seconds for key, job in asking.items() if (seconds := trial_seconds(job)) is not None}
    found = trials(fleet, assessments, longest, held, previous, requests, left=_left_today(fleet))
    ends = (key for key, run in under_way.items() if others_wait(waiting, run.placement.pool, key))
    return replace(found, ends=frozenset(ends))


def trials(
    fleet: Fleet,
    assessments: Mapping[JobKey, Assessment],
    longest: Mapping[JobKey, float],
    held: Iterable[Placement],
    previous: Trials | None = None,
    requests: Mapping[JobKey, TrialRequest] = MappingProxyType({}),
    left: float = math.inf,
) -> Trials:
    """The trials of a cycle. longest: seconds that may be measured, of each job that lets its program be tried and has
    no trial; held: where trials are; previous: of the last cycle, with the same `longest`;
    requests: what users ask for, which comes first and takes any free chips; left: dollars
    that those that begin may cost."""
    known = {} if previous is None else previous.offered
    offered: dict[JobKey, tuple[Evaluated, Sequence[TrialOffer]]] = {}
    for key, seconds in longest.items():
        evaluated = assessments[key].evaluated if key in assessments else None
        if evaluated is not None:
            before = known.get(key)
            same = before is not None and before[0] is evaluated
            offered[key] = before if before is not None and same else (evaluated, paying(evaluated, seconds))
    asked: dict[JobKey, Sequence[TrialOffer]] = {}
    refused: dict[JobKey, str] = {}
    for key, request in requests.items():
        job = fleet.jobs[key]
        if job.state.trial is None and job.observed.trial is not None:
            continue  # the last one is being ended
        answer = answers(job, request, assessments[key].evaluated if key in assessments else None)
        if isinstance(answer, str):
            refused[key] = answer
        else:
            asked[key], least = answer, min(map(chip_cost, answer))
            refused[key] = beyond_dollars_of_all(least, left) if least > left else no_chips(answer[0].placement)
    ranked = [
        (key not in asked, -offer.gain, key, offer)
        for key, offers in ({key: offers for key, (_, offers) in offered.items()} | asked).items()
        for offer in offers
        if affordable(fleet.jobs[key], offer)
    ]
    begin = _begun(fleet, assessments, sorted(ranked), held, left) if ranked else {}
    return Trials(begin, offered, refused={key: why for key, why in refused.items() if key not in begin})


def _begun(
    fleet: Fleet,
    assessments: Mapping[JobKey, Assessment],
    ranked: Sequence[tuple[bool, float, JobKey, TrialOffer]],
    held: Iterable[Placement],
    left: float,
) -> dict[JobKey, TrialOffer]:
    """Those that find chips, in this order: whether nobody asks for it, what it does not gain, whose it is."""
    waiting = who_waits(fleet, assessments)
    room = Room({name: replace(pool, growable=0) for name, pool in fleet.pools.items()}, fleet.jobs.values())
    for key, assessment in assessments.items():
        decision = assessment.decision
        if decision.target is not None and (decision.action is Action.START or decision.action in MIGRATING_ACTIONS):
            room.take(fleet.jobs[key], decision.target)
    before = Counter[str]()
    for place in held:
        before[place.pool] += place.chips
    taken, found = before.copy(), dict[JobKey, TrialOffer]()
    for unasked, _, key, offer in ranked:
        place, used = offer.placement, taken[offer.placement.pool]
        allowed = SHARE_OF_FREE * (fleet.pools[place.pool].free + before[place.pool])
        if key in found or others_wait(waiting, place.pool, key) or (unasked and used + place.chips > allowed):
            continue
        beside = _beside(fleet.jobs[key])
        if chip_cost(offer) <= left and room.fits(beside, (place,))[0]:
            room.take(beside, place)
            left -= chip_cost(offer)
            taken[place.pool], found[key] = used + place.chips, offer
    return found


def _left_today(fleet: Fleet) -> float:
    """Dollars that more trials may cost until midnight UTC, by the policy; infinite where it sets no limit."""
    limits, today, left = fleet.policy.trials, TrialsDay.at(fleet.now), math.inf
    if limits is None or limits.max_cost_per_day is None:
        return left
    left = float(limits.max_cost_per_day)
    for job in fleet.jobs.values():
        run = job.state.trial
        left -= today.and_before(job.state.trials_day).cost
        if run is not None:
            left -= max(run.spent(fleet.now), (run.cost_per_hour or 0.0) * run.measures / HOUR)
    return left


def _pending(job: Job) -> list[Placement]:
    """Where it has pods that find no chips."""
    refs = [job.state.revision, job.state.migration and job.state.migration.target]
    return [ref.placement for ref in refs if ref and job.revision(ref.revision).unschedulable_since is not None]


def _beside(job: Job) -> Job:
    """The job's program without what the job has: the chips of a trial are beside its own."""
    return altered(job, key=JobKey(job.key.namespace, f"{job.key.name} on trial"), state=JobState())
