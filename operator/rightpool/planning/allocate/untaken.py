"""Room that is not taken: chips that are free for an adopted object that waits, and Kubernetes does not start it.

Its scheduler knows more than a plan does, such as what other pods have of a node's CPUs. Chips are kept for such an
object for as long as a start may take, and after that it asks for none until the policy's `fleet.maxWait` is over.
"""

from collections.abc import Mapping

from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.offers.assessment import Assessment


def untaken(alone: Mapping[JobKey, Assessment], fleet: Fleet, before: Mapping[JobKey, float]) -> dict[JobKey, float]:
    """Unix seconds since when there has been room for each such object. alone: what each job would get by itself.
    before: of the last cycle."""
    found: dict[JobKey, float] = {}
    longest = fleet.policy.start_deadline.total_seconds() + fleet.policy.fleet.max_wait.total_seconds()
    for key, assessment in alone.items():
        if fleet.jobs[key].lacks is None:
            continue
        since, room = before.get(key), any(assessment.fits)
        if since is not None and fleet.now - since <= longest and (room or given_up(since, fleet)):
            found[key] = since
        elif room:
            found[key] = fleet.now
    return found


def given_up(since: float | None, fleet: Fleet) -> bool:
    """Whether nothing is kept for an object any more."""
    return since is not None and fleet.now - since > fleet.policy.start_deadline.total_seconds()
