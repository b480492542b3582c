"""Readiness: what there is to decide about a job, and by what: measurements, specifications, or nothing yet."""

from collections.abc import Mapping

from rightpool.api.action import Action
from rightpool.api.choices import Switch
from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.revision import Revision
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.jobs.lingering import foreign_pod
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.pool_gates import current_gate, home_vendor, placed_vendor
from rightpool.planning.offers.rejection import Gap, Rejection
from rightpool.planning.offers.shape import Shape
from rightpool.planning.work.registry import work_of
from rightpool.profiles.profile import Profile, Steadiness

COMPLETED = "Completed"


def not_evaluated(job: Job) -> Decision | None:
    """Why a job is not evaluated at all; None where it is."""
    if job.state.finished:
        ended = Reason.JOB_COMPLETED if job.state.finished == COMPLETED else Reason.JOB_FAILED
        return Decision(Action.KEEP, ended)
    if job.deleting:
        return Decision(Action.KEEP, Reason.SETTLED)
    if job.invalid is not None:
        return Decision(Action.HOLD, Reason.INVALID_SPEC)
    if contradiction(job) is not None:
        return Decision(Action.HOLD, Reason.INVALID_STATUS)
    if foreign_pod(job) is not None:
        return Decision(Action.HOLD, Reason.FOREIGN_POD)
    unusable = None if job.spec.workload_ref is None else _unusable_object(job)
    if unusable is not None:
        return Decision(Action.HOLD, unusable)
    child = job.child
    if child is not None and child.stopped_by_user and job.state.migration is None:
        return Decision(Action.HOLD, Reason.SUSPENDED)
    if job.stops:
        pause = job.state.pause
        return Decision(Action.HOLD, Reason.SUSPENDED if job.spec.suspend or pause is None else pause.reason)
    revision, refusal = job.state.revision, job.observed.refusal
    if refusal is not None and refusal.reason is Reason.KIND_NOT_INSTALLED:
        return Decision(Action.HOLD, refusal.reason)
    if revision is None or refusal is None or job.state.migration is not None:
        return None
    if revision.workload_hash != job.workload_hash_of(revision) and refusal.revision != revision.revision:
        # What runs is not ended for a template that nobody can start. What its own child is refused, such as a Service
        # by a quota, the edit may do without.
        return Decision(Action.HOLD, refusal.reason)
    return None


def _unusable_object(job: Job) -> Reason | None:
    """Why nothing is decided about an object that somebody else has made."""
    if job.observed.refusal is not None:
        return job.observed.refusal.reason
    if not job.spec.seen:
        return Reason.WORKLOAD_NOT_RUNNING
    return Reason.WORKLOAD_NOT_RUNNING if job.state.revision is None and job.awaits is None else None


def resized_or_edited(job: Job) -> bool:
    """Whether the user has changed the workload since it was placed, and it is to become that. An object of his own is
    what he has made of it."""
    if job.spec.workload_ref is not None:
        return False
    revision, workload = job.state.revision, job.spec.workload
    assert revision is not None
    return revision.workload_hash != job.workload_hash_of(revision) or revision.requested != (
        workload.chips,
        workload.replicas,
    )


def measurement_gap(job: Job, telemetry: bool) -> Gap | None:
    """What is missing to decide by measurements; None where the profile is complete and of the current Revision."""
    revision, profile = job.state.revision, job.observed.profile
    assert revision is not None
    child = job.revision(revision.revision)
    if job.queued:
        return Gap(Reason.WAITING_FOR_QUOTA, queue=job.queue)
    if child.crash is not None and not child.all_running(revision.placement.replicas):
        return Gap(Reason.CRASH_LOOP)
    if revision.since is None:
        return Gap(Reason.STARTING, blocked=child.blocked)
    work = work_of(job.spec)
    stays = work.unplanned(job)
    if stays is not None or not work.profiled:
        route = job.observed.route_problem if stays is Reason.ROUTE_UNUSABLE else None
        return None if stays is None else Gap(stays, route=route)
    if not telemetry:
        return Gap(Reason.TELEMETRY_UNAVAILABLE)
    if profile is None or profile.steadiness is Steadiness.ABSENT:
        return Gap(Reason.PROFILING_OFF if job.spec.profiling.mode is Switch.OFF else Reason.NO_TELEMETRY)
    return _gap_of_profile(job, profile, revision)


def _gap_of_profile(job: Job, profile: Profile, revision: Revision) -> Gap | None:
    if profile.key.revision != revision.revision:
        return Gap(Reason.WARMING_UP, revision=profile.key.revision)
    if profile.steadiness is Steadiness.STALE:
        return Gap(Reason.STALE_TELEMETRY)
    if profile.steadiness is Steadiness.WARMING_UP:
        return Gap(Reason.WARMING_UP, window=profile.window)
    if profile.pods < profile.expected:
        return Gap(Reason.PARTIAL_TELEMETRY, heard=(profile.pods, profile.expected))
    if profile.shared is not None:
        return Gap(Reason.SHARED_CHIP)
    lacking = work_of(job.spec).lacking(job, profile)
    if lacking is Reason.WARMING_UP:
        return Gap(lacking, window=profile.window)
    if lacking is None and not profile.complete:
        lacking = Reason.PARTIAL_TELEMETRY
    return None if lacking is None else Gap(lacking)


def comparable_elsewhere(job: Job) -> bool:
    """Whether the throughput of where it is compares with that at every size that it may have."""
    revision, spec = job.state.revision, job.spec
    assert revision is not None
    unit, here = unit_of(job), revision.placement.chips
    return spec.compares(unit, here, spec.min_chips) and spec.compares(unit, here, spec.max_chips)


def late(job: Job, policy: PlacementPolicySpec, now: float) -> bool:
    """Whether a job can't start where it was placed, and that for long enough: it has never run there and its pods say
    why; it has run and lost its nodes, and Kubernetes finds no others; or it has none and can't, because the pool is
    gone.

    Being slow is no reason. Its queue and its user's suspending do not count: Kubernetes begins to run it after them.
    """
    revision = job.state.revision
    if revision is None or job.state.migration is not None or job.stops:
        return False
    state = job.revision(revision.revision)
    longest = policy.start_deadline.total_seconds()
    if state.exists and revision.since is not None:
        lost = None if state.suspended or state.deleting or state.finishing else state.unschedulable_since
        return lost is not None and now - lost > longest
    if (revision.since is not None and job.observed.pool_problem is None) or job.obstacle is None:
        return False
    if state.unseen is not None or state.unmade:  # its scheduler and its namespace are no better elsewhere
        return False
    if not state.exists:
        began: float | None = revision.created_at
    elif revision.since is not None or state.suspended or state.deleting:
        return False
    else:
        began = state.started_at
    return began is not None and now - began > longest


def forbidden(job: Job, shape: Shape, pools: Mapping[str, Pool]) -> Rejection | None:
    """Why the user no longer allows the current placement; None where it is fine."""
    revision = job.state.revision
    assert revision is not None
    here = revision.placement
    home = pools[here.pool]
    return current_gate(shape, home, here, home_vendor(shape, pools.values(), placed_vendor(revision, home)))
