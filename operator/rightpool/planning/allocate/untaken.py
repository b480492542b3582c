"""Room that is not taken: chips that are free for a job that waits, and Kubernetes does not start it.

Its scheduler knows more than a plan does, such as what other pods have of a node's CPUs. Chips are kept for such a
job for as long as a start may take, and after that it asks for none there until the policy's `fleet.maxWait` is over.
"""

from collections.abc import Mapping
from dataclasses import replace

from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.intent import Intent


def untaken(alone: Mapping[JobKey, Assessment], fleet: Fleet, before: Mapping[JobKey, float]) -> dict[JobKey, float]:
    """Unix seconds since when there has been room for each such job. alone: what each job would get by itself.
    before: of the last cycle."""
    found: dict[JobKey, float] = {}
    longest = fleet.policy.start_deadline.total_seconds() + fleet.policy.fleet.max_wait.total_seconds()
    for key, assessment in alone.items():
        if fleet.jobs[key].lacks is None or assessment.intent is not Intent.START:
            continue
        since, room = before.get(key), any(assessment.fits)
        if since is not None and fleet.now - since <= longest and (room or given_up(since, fleet)):
            found[key] = since
        elif room:
            found[key] = fleet.now
    return found


def elsewhere(
    evaluated: Mapping[JobKey, Evaluated], before: Mapping[JobKey, float], fleet: Fleet
) -> Mapping[JobKey, Evaluated]:
    """What each job could have: without the place that nothing is kept at any more, of a job that could have others."""
    changed: dict[JobKey, Evaluated] = {}
    for key, since in before.items():
        if key in evaluated and given_up(since, fleet):
            one, job = evaluated[key], fleet.jobs[key]
            left = [number for number, place in enumerate(one.places) if not job.starts_itself(place)]
            if left and one.intent is Intent.START:
                places = tuple(one.places[number] for number in left)
                changed[key] = replace(one, wanted=[one.wanted[number] for number in left], places=places)
    return {**evaluated, **changed} if changed else evaluated


def given_up(since: float | None, fleet: Fleet) -> bool:
    """Whether nothing is kept for such a job any more."""
    return since is not None and fleet.now - since > fleet.policy.start_deadline.total_seconds()
