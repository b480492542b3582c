"""How a Decision becomes state: the first Revision of a job, or a planned migration, which waits until it may begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import BatchPromise, Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.ending import end_migration, with_avoided
from rightpool.planning.moves.handovers import handover_of
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import MIGRATING_ACTIONS, Decision
from rightpool.planning.offers.evidence import SourceNotHeld

if TYPE_CHECKING:
    from rightpool.planning.offers.assessment import Assessment


Why = Callable[["Job", "Assessment", float], str]
"""Says why a migration begins. The last argument: Unix seconds."""


def with_decision(job: Job, assessment: Assessment, now: float, why: Why) -> Job:
    """What the assessment decides, begun: the first Revision or a migration. The same job where it decides neither."""
    decision = assessment.decision
    if decision.candidate is None or decision.target is None:
        return job
    if decision.action is Action.START and job.starts_itself(decision.target):
        return job  # it is found where it is then
    if decision.action is Action.START and job.state.revision is None:
        if awaits_check(job, decision.candidate.vendor):
            return job
        target = _revision(job, decision, next_revision(job), now)
        return job.with_state(replace(job.state, revision=target, decisions=job.state.decisions + 1))
    if job.state.revision is None or decision.action not in (*MIGRATING_ACTIONS, Action.START):
        return job
    number = job.state.decisions + 1
    current = assessment.current
    measured = None if current is None else current.throughput
    migration = Migration(
        id=f"d-{number}",
        action=decision.action,
        phase=Phase.PLANNED,
        source=job.state.revision,
        target=_revision(job, decision, next_revision(job), now),
        created_at=now,
        phase_since=now,
        reason=decision.reason,
        message=why(job, assessment, now),
        unit=decision.candidate.unit if current is None else current.unit,
        predicted=decision.candidate.throughput,
        baseline=None if measured is None else measured.median,
        useful=decision.candidate.useful / (1.0 if current is None else current.useful),
        healthy_baseline=None if current is None else current.healthy,
        without_return=_without_return(decision),
        batches=_batches(decision.candidate),
    )
    return job.with_state(replace(job.state, migration=migration, decisions=number))


def begin(job: Job, migration: Migration, assessment: Assessment | None, edited: bool, now: float) -> Job:
    """The migration begins where nothing is in its way any more, and ends where it is not wanted any more. edited:
    whether the workload is another than was planned."""
    if edited or job.spec.suspend:
        return end_migration(job, migration, Outcome.SUPERSEDED, Reason.SUPERSEDED, now)
    if assessment is not None and assessment.withdrawn and migration.reason is not Reason.RELEASED:
        # Time has passed since the decision was written (an approval may take days), and others were served meanwhile.
        return end_migration(job, migration, Outcome.HELD, Reason.SUPERSEDED, now)
    if migration.action is Action.UPDATE and job.spec.workload_ref is None:
        if not job.observed.template_checked:
            return job
        refusal = job.observed.refusal
        if refusal is not None and refusal.revision == migration.target.revision:
            migration = replace(migration, message=refusal.message)
            return end_migration(job, migration, Outcome.HELD, refusal.reason, now)
    if job.spec.workload_ref is not None:
        if job.observed.object_checked != migration.target.revision:
            return job
        kept = job.observed.object_refusal
        if kept is not None and kept.revision == migration.target.revision:
            job = with_avoided(job, migration.target, kept.reason, now, message=kept.message)
            return end_migration(job, replace(migration, message=kept.message), Outcome.HELD, kept.reason, now)
    if awaits_check(job, migration.target.vendor):
        return job
    refused = next((one for one in job.observed.refused_variants if one.vendor == migration.target.vendor), None)
    if refused is not None:
        migration = replace(migration, message=refused.message)
        return end_migration(job, migration, Outcome.HELD, Reason.INVALID_VARIANT, now)
    waits = assessment is not None and assessment.waits_for is not None and migration.reason is not Reason.RELEASED
    if job.awaits_approval or waits:
        return job
    return handover_of(job).begin(job, replace(migration, last_rate=job.observed.last_rate), now)


def _batches(candidate: Candidate) -> BatchPromise | None:
    size = candidate.size
    return None if size is None else BatchPromise(size.fixed, size.each, size.spare)


def _without_return(decision: Decision) -> Reason | None:
    """Why the chips that are left are not held: what the fleet moves others have by then."""
    if isinstance(decision.evidence, SourceNotHeld):
        return Reason.SOURCE_NOT_HELD
    return Reason.FLEET_GAINS if decision.reason is Reason.FLEET_GAINS else None


def awaits_check(job: Job, vendor: str | None) -> bool:
    """Whether the job would run by a variant that the API server has not been asked about yet."""
    return job.variant(vendor) is not None and not job.observed.variants_checked


def _revision(job: Job, decision: Decision, number: int, now: float) -> Revision:
    assert decision.candidate is not None
    workload = job.spec.workload
    ref = Revision(
        revision=number,
        placement=decision.candidate.placement,
        requested_chips=workload.chips,
        requested_replicas=workload.replicas,
        created_at=now,
        cost_per_hour=decision.candidate.cost_per_hour,
        generation=job.generation,
        vendor=decision.candidate.vendor,
        template_vendor=decision.candidate.template_vendor,
        chip=decision.candidate.chip,
    )
    return replace(ref, workload_hash=job.workload_hash_of(ref))


def next_revision(job: Job) -> int:
    """A number that no Revision of this job has had. What pods say of theirs, anybody can write."""
    numbers = [0, *(number for number, state in job.observed.revisions.items() if state.exists or state.earlier)]
    if job.state.revision is not None:
        numbers.append(job.state.revision.revision)
    if job.state.migration is not None:
        numbers += [job.state.migration.source.revision, job.state.migration.target.revision]
    return max(numbers) + 1
