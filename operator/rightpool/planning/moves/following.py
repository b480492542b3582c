"""Following: an adopted object is where it is, and the state of its job says so."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.edits import with_edit_of_object


def with_note(job: Job) -> Job:
    """What the object was before it was changed is kept in the status, too, and before anything else is changed."""
    seen, known = job.observed.adopted, job.state.adopted
    if seen is None or known is None:
        return job
    found = with_remade(job, replace(known, original=seen.note), seen.uid)
    return job if found == known else job.with_state(replace(job.state, adopted=found))


def with_remade(job: Job, known: AdoptedObject, uid: str) -> AdoptedObject:
    """What is known of an object that is to be made anew, before it is deleted; and no more once it is there again, or
    was taken in hand meanwhile. uid: of the object that is seen, or of which the status knows what it was."""
    if known.remade is not None and uid != known.uid:
        return replace(known, uid=uid, remade=None)
    manifest = job.observed.object_manifest
    if manifest is not None:
        return replace(known, remade=manifest or None)
    held = any(state.adopted and state.held for state in job.observed.revisions.values())
    return known if held or known.remade is None else replace(known, remade=None)


def followed(job: Job, now: float) -> Job:
    """The job where its object runs, and as that is, also where its owner has made it anew; the very same job where its
    state says so already. What it costs counts from the moment when it was first found there."""
    seen, state = job.observed.adopted, job.state
    if seen is None or seen.placement is None or state.migration is not None:
        return job
    workload, ref = job.spec.workload, state.revision
    found = Revision(
        revision=seen.revision,
        placement=seen.placement,
        workload_hash=job.workload_hash,
        requested_chips=workload.chips,
        requested_replicas=workload.replicas,
        created_at=now,
        generation=job.generation,
        chip=seen.chip,
    )
    adopted = state.adopted
    if adopted is None or (adopted.uid != seen.uid and adopted.remade is None):
        adopted = AdoptedObject(seen.uid)
    if ref is not None and _same(ref, found) and adopted is state.adopted:
        return job
    if ref is not None:
        job = with_edit_of_object(job, ref, found)
    return job.with_state(replace(job.state, revision=found, adopted=adopted))


def _same(ref: Revision, found: Revision) -> bool:
    one, two = ((r.revision, r.placement, r.workload_hash, r.requested) for r in (ref, found))
    return one == two
