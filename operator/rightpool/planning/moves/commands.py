"""Commands: what a persisted state asks of the cluster. Each is idempotent, and safe to repeat after a crash."""

from dataclasses import dataclass

from rightpool.api.action import Action
from rightpool.api.migration import Migration, Phase
from rightpool.api.revision import Revision
from rightpool.api.trial_run import TrialRun
from rightpool.api.value_object import value_object
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.handovers import handover_of
from rightpool.planning.moves.release import way_home
from rightpool.planning.work.registry import work_of


@value_object
class EnsureRevision:
    """The child of this Revision exists. Never while another Revision has pods, where these would write to the same
    checkpoint."""

    ref: Revision
    """Where it runs, and by which template."""
    suspend: bool = False
    """Whether it is to have no pods."""


@dataclass(frozen=True, slots=True)
class DirectTraffic:
    """Requests go to the pods of these Revisions, and of no others."""

    revisions: tuple[int, ...]
    """Numbers of those that the Service sends requests to."""
    beside: int | None = None
    """Number of the one that an HTTPRoute sends a share to; None where it has no weights to write."""
    percent: int = 0
    """That share."""

    @property
    def numbers(self) -> frozenset[int]:
        """Of all that requests may go to."""
        return frozenset(self.revisions) | (frozenset() if self.beside is None else {self.beside})


@dataclass(frozen=True, slots=True)
class EndRevision:
    """The child is deleted, its pods with their grace period. Not where it has succeeded in the meantime, nor while
    requests go to it."""

    revision: int
    """Its number."""


@dataclass(frozen=True, slots=True)
class RequestCheckpoint:
    """The sidecars of this Revision are asked for a save, under the migration's id (repeats are one request)."""

    revision: int
    """Its number."""
    id: str
    """Of the request: repeats under it are one request."""

    ending: bool = False
    """Whether pods that are being ended are asked, too: those that are evicted have their grace period to save in."""


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """The sidecars of this Revision are asked for a trace, or how far it is (repeats are one request)."""

    revision: int
    """Its number."""
    id: str
    """As the user named the request: repeats under it are one request."""
    rank: int | None
    """None for all."""


@dataclass(frozen=True, slots=True)
class CheckTemplate:
    """The API server is asked once for each spec whether it would take a child of it; nothing is stored."""

    target: Revision | None = None
    """Where the child would run; None where the job has no place yet."""


@dataclass(frozen=True, slots=True)
class CheckVariants:
    """The API server is asked once for each spec whether it would take a child with each variant that is not in use."""


@dataclass(frozen=True, slots=True)
class AskWhyUnmade:
    """The Events of this Revision's child are read, which lacks pods."""

    revision: int
    """Its number."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """The object that the job names is marked as the job's, so that it is seen. Its spec stays as it is."""


@value_object
class HoldObject:
    """The object that the job names is suspended, and says that the operator has done it."""

    ref: Revision
    """What it is until then."""


@value_object
class ChangeObject:
    """The object runs as this Revision, where the operator has suspended it. Else nothing is done to it."""

    ref: Revision | None
    """None: as it is."""


@value_object
class TurnObject:
    """The object becomes this Revision while it runs: its controller starts its groups anew, one after the other."""

    ref: Revision
    """What it becomes."""


@value_object
class FreeJob:
    """The finalizer is taken off the ProfiledJob: its object is there again."""


@value_object
class RenewJobs:
    """Jobs that the object's controller has made, and that are held to the pool which it has left, are deleted: they
    are made anew."""

    ref: Revision
    """What the object is."""


@value_object
class CheckObject:
    """The API server is asked once whether the object could become this Revision; nothing is stored."""

    target: Revision
    """Where it would go."""


@value_object
class EnsureTrial:
    """The ProfiledJob of this trial exists."""

    run: TrialRun
    """Where it runs, and for how long."""


@dataclass(frozen=True, slots=True)
class EndTrial:
    """The ProfiledJob of a trial is deleted, and with it its pods."""

    number: int
    """N of its name."""


@dataclass(frozen=True, slots=True)
class LetGo:
    """The ProfiledJob is deleted, and the label taken off its object that would make another one."""


Command = (
    Adopt
    | LetGo
    | HoldObject
    | ChangeObject
    | TurnObject
    | FreeJob
    | RenewJobs
    | CheckObject
    | EnsureRevision
    | EnsureTrial
    | EndTrial
    | DirectTraffic
    | EndRevision
    | RequestCheckpoint
    | RequestTrace
    | CheckTemplate
    | CheckVariants
    | AskWhyUnmade
)


def commands(job: Job) -> tuple[Command, ...]:
    """What the persisted state asks of the cluster; each command is a no-op where the cluster already complies."""
    if job.deleting or job.state.finished or job.invalid or job.observed.error or contradiction(job):
        # Whatever keeps a job from being looked after, nobody's object stays suspended for it.
        return (*_resumed(job), *_freed(job), *(one for one in _tried(job) if isinstance(one, EndTrial)))
    if job.spec.workload_ref is not None:
        return (Adopt(), *_freed(job), *_to_object(job))
    # Kubernetes' garbage collector can miss what a ProfiledJob has left that was deleted and made anew while its watch
    # was broken: it would run for ever. The collector would do the same to any object whose owner is gone, so that
    # nobody gains by forging one.
    earlier = [r.revision for r in job.observed.revisions.values() if r.earlier]
    if job.state.revision is None:
        # A mistake in the template is reported at once, and not when there are chips for it.
        checks = (*_template_checked(job, None), *_variants_checked(job))
        return (*(EndRevision(number) for number in sorted(earlier)), *checks)
    here = job.state.revision
    migration = job.state.migration
    pause = job.state.pause
    # Pods that run are asked for a save first, which takes a state that is written down.
    suspend = pause.stopping if pause is not None else job.spec.suspend and not _runs(job, migration)
    handover = handover_of(job)
    there = handover.there(here, migration)
    leaves = here not in there
    wanted: list[Command] = [EndRevision(here.revision)] if leaves else []
    for ref in there:
        wanted += _ensured(job, ref, suspend)
    if job.spec.workload.server is not None:
        wanted.append(directed(job))
    if migration is not None and migration.phase is Phase.PLANNED and migration.action is Action.UPDATE:
        wanted += _template_checked(job, migration.target)
    if not suspend:
        wanted += _saved(job, here)
    wanted += _asked_of_sidecars(job)
    wanted += _variants_checked(job)
    wanted += _tried(job)
    child = job.revision(here.revision)
    if not (leaves or suspend) and child.crash is None and child.lacking(here.placement.replicas):
        wanted.append(AskWhyUnmade(here.revision))
    # A leftover of a crash or of a late leader must not hold chips, and must not stop what is wanted from starting.
    strays = [
        r.revision
        for r in job.observed.revisions.values()
        if r.exists and not r.succeeded and r.revision not in {here.revision, *(ref.revision for ref in there)}
    ] + earlier
    if strays:
        ends = tuple(EndRevision(number) for number in sorted(strays))
        if not work_of(job.spec).one_writer:
            return (*wanted, *ends)
        return ends + tuple(c for c in wanted if not isinstance(c, EnsureRevision))
    return tuple(wanted)


def directed(job: Job) -> DirectTraffic:
    """Where the requests of a server go; nowhere before its first Revision."""
    here, server, migration = job.state.revision, job.spec.workload.server, job.state.migration
    if here is None:
        return DirectTraffic(())
    handover = handover_of(job)
    revisions = tuple(ref.revision for ref in handover.answering(here, migration))
    if server is None or server.traffic.http_route is None:
        return DirectTraffic(revisions)
    # The Service beside is always there: a route that names a missing one is broken.
    beside, percent = handover.weighed(migration) or (here, 0)
    return DirectTraffic(revisions, beside.revision, percent)


def _to_object(job: Job) -> tuple[Command, ...]:
    """What is asked of an object that somebody else has made, once it is found."""
    here, migration, pause = job.state.revision, job.state.migration, job.state.pause
    if job.releasing and migration is None and way_home(job) is None:
        return (*_resumed(job), LetGo())
    if here is None or job.spec.only_watched:
        return tuple(_resumed(job))
    if here not in handover_of(job).there(here, migration) or (pause is not None and pause.stopping):
        return (HoldObject(here),)
    checked = [CheckObject(migration.target)] if migration is not None and migration.phase is Phase.PLANNED else []
    turned = [TurnObject(migration.target)] if migration is not None and migration.phase is Phase.DRAINING else []
    # Its first Revision is as its user has made it, with Jobs of its own.
    moved = here.revision > 1 and job.revision(here.revision).blocked is not None
    renewed = [RenewJobs(here)] if moved else []
    return (*_resumed(job), *turned, *renewed, *checked, *_saved(job, here), *_asked_of_sidecars(job))


def _resumed(job: Job) -> list[Command]:
    """What the operator has suspended runs again, wherever it is to be now."""
    held = any(state.adopted and state.held for state in job.observed.revisions.values())
    return [ChangeObject(job.state.revision)] if held else []


def _freed(job: Job) -> list[Command]:
    """Where its status is not all that is left of its object."""
    adopted = job.state.adopted
    away = job.unreadable is not None or (adopted is not None and adopted.remade is not None)
    back = any(state.adopted and not state.held for state in job.observed.revisions.values())
    return [FreeJob()] if job.guarded and (back or not away) else []


def _saved(job: Job, here: Revision) -> list[Command]:
    """Before its pods are ended, for a move or a pause."""
    migration, pause = job.state.migration, job.state.pause
    wanted: list[Command] = []
    if migration is not None and handover_of(job).saves(migration) and migration.saved_at is None:
        wanted.append(RequestCheckpoint(here.revision, migration.id))
    if pause is not None and not pause.stopping:
        wanted.append(RequestCheckpoint(here.revision, f"pause-{pause.since:.0f}"))
    return wanted


def _asked_of_sidecars(job: Job) -> list[Command]:
    wanted: list[Command] = []
    rescue = job.state.rescue
    if rescue is not None and not rescue.over:
        wanted.append(RequestCheckpoint(rescue.revision, f"rescue-{rescue.since:.0f}", ending=True))
    trace = job.state.trace
    if trace is not None and not trace.over and trace.revision is not None:
        wanted.append(RequestTrace(trace.revision, trace.id, trace.rank))
    return wanted


def _ensured(job: Job, ref: Revision, suspend: bool) -> list[Command]:
    """None where the Revision has no child, and the workload was edited since it was planned: a child would be made of
    the edited one under the hash of the earlier, and a user who takes the edit back would never get it undone."""
    if ref.workload_hash != job.workload_hash_of(ref) and not job.revision(ref.revision).exists:
        return []
    return [EnsureRevision(ref, suspend)]


def _tried(job: Job) -> list[Command]:
    """What its trial asks for; one that is over ends, and that of a job that has ended."""
    run, seen = job.state.trial, job.observed.trial
    if seen is not None:
        return [] if run is not None and seen.number == run.number else [EndTrial(seen.number)]
    return [] if run is None else [EnsureTrial(run)]


def _template_checked(job: Job, target: Revision | None) -> list[Command]:
    return [] if job.observed.template_checked else [CheckTemplate(target)]


def _variants_checked(job: Job) -> list[Command]:
    """A mistake in a variant is reported at once, and not when the job is to move there."""
    return [CheckVariants()] if job.variants and not job.observed.variants_checked else []


def _runs(job: Job, migration: Migration | None) -> bool:
    """Whether a pod runs of what the state asks for."""
    ref = job.state.revision if migration is None or migration.phase is Phase.PLANNED else migration.target
    return ref is not None and job.revision(ref.revision).running > 0
