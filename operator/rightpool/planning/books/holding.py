"""What a job's pods hold now, what is kept for an edit, and what that costs an hour.

Paid is what is on a node: starting pods, pods that load, and pods that end. Pods in a queue hold nothing. Paid is also
what is kept from others for an edit while its save is waited for: that may take as long as its user wants it to.
"""

from typing import Final, NamedTuple

from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.kept_target import kept_too_long, waits_for_save


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


class Kept(NamedTuple):
    """Chips that nobody else gets, beside those that the job's pods hold."""

    chips: int = 0
    """Of the placement that the user wants."""
    cost_per_hour: float | None = 0.0
    """Dollars; None where the price is unknown."""


NOTHING_KEPT: Final = Kept()


def kept_for_edit(job: Job, policy: PlacementPolicySpec, now: float) -> Kept:
    """What is kept for what the user has asked for, until it is given back. The operator's own moves are not charged:
    nobody can have them wait on purpose."""
    migration = waits_for_save(job)
    if migration is None or not migration.demanded or kept_too_long(migration, policy, now):
        return NOTHING_KEPT
    target = migration.target
    there = [ref for ref in _known(job).values() if ref.placement.pool == target.placement.pool]
    held = sum(job.revision(ref.revision).holding * ref.placement.chips_per_replica for ref in there)
    chips = max(target.placement.chips - held, 0)
    if not chips:
        return NOTHING_KEPT
    cost = target.cost_per_hour
    return Kept(chips, None if cost is None else cost * chips / target.placement.chips)


def _known(job: Job) -> dict[int, Revision]:
    migration = job.state.migration
    refs = [job.state.revision]
    if migration is not None:
        refs = [migration.abandoned, migration.source, migration.target, *refs]
    return {ref.revision: ref for ref in refs if ref is not None}
