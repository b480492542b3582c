"""How a Decision becomes state: the first Revision of a job, or a planned migration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.words import Words
from rightpool.planning.offers.decision import MIGRATING_ACTIONS, Decision
from rightpool.planning.offers.evidence import SourceNotHeld

if TYPE_CHECKING:
    from rightpool.planning.offers.assessment import Assessment


def with_decision(job: Job, assessment: Assessment, now: float, words: Words) -> Job:
    """What the assessment decides, begun: the first Revision or a migration. The same job where it decides neither."""
    decision = assessment.decision
    if decision.candidate is None or decision.target is None:
        return job
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
        message=words.decided(job, assessment, now),
        unit=decision.candidate.unit if current is None else current.unit,
        predicted=decision.candidate.throughput,
        baseline=None if measured is None else measured.median,
        healthy_baseline=None if current is None else current.healthy,
        without_return=Reason.SOURCE_NOT_HELD if isinstance(decision.evidence, SourceNotHeld) else None,
    )
    return job.with_state(replace(job.state, migration=migration, decisions=number))


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
