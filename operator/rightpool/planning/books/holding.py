"""What a job's pods hold now, and what that costs an hour.

Paid is what is on a node: starting pods, pods that load, and pods that end. Pods in a queue hold nothing.
"""

from typing import NamedTuple

from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job


class Holding(NamedTuple):
    """Chips of all Revisions together."""

    chips: int
    """Of pods on nodes, whether they run or not."""
    cost_per_hour: float | None
    """Dollars; None where nothing is held, or the price of a part is unknown."""
    since: float | None
    """Unix seconds since when they are held, the mean over pods; None where that is not known."""


def holding(job: Job) -> Holding:
    """What the pods of a job hold. Pods of a Revision that its state does not know are left out."""
    known = _known(job)
    chips, cost, pods = 0, 0.0, 0
    priced = True
    moments: list[tuple[float, int]] = []
    for number, state in job.observed.revisions.items():
        revision, held = known.get(number), state.holding
        if revision is None or held == 0:
            continue
        pods += held
        chips += held * revision.placement.chips_per_replica
        if revision.cost_per_hour is None:
            priced = False
        else:
            cost += revision.cost_per_hour * held / revision.placement.replicas
        if state.bound_at is not None:
            moments.append((max(state.bound_at, revision.created_at), held))
    if not chips:
        return Holding(0, None, None)
    timed = sum(held for _, held in moments)
    since = sum(at * held for at, held in moments) / timed if timed == pods else None
    return Holding(chips, cost if priced else None, since)


def _known(job: Job) -> dict[int, Revision]:
    migration = job.state.migration
    refs = [job.state.revision]
    if migration is not None:
        refs = [migration.abandoned, migration.source, migration.target, *refs]
    return {ref.revision: ref for ref in refs if ref is not None}
