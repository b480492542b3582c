"""The executor: carries out the commands of a persisted state, as far as the cluster does not comply with them yet.

It is called after the status that requires the commands is stored, and again in every later cycle. It may be stopped
between any two requests; the next call continues from the state that it finds.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from rightpool.api.conditions import Reason
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound, Unavailable
from rightpool.cluster.sidecars import Sidecars
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.planning.moves.commands import (
    Adopt,
    AskWhyUnmade,
    ChangeObject,
    CheckObject,
    CheckTemplate,
    CheckVariants,
    Command,
    DirectTraffic,
    EndRevision,
    EndTrial,
    EnsureRevision,
    EnsureTrial,
    FreeJob,
    HoldObject,
    LetGo,
    RenewJobs,
    RequestTrace,
    TurnObject,
)
from rightpool.planning.work.registry import work_of
from rightpool.runtime.act.admissions import Admissions
from rightpool.runtime.act.adoption import Adopter
from rightpool.runtime.act.checkpointer import Checkpointer
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.companions import Companions
from rightpool.runtime.act.creation import create_or_get, name_taken_text
from rightpool.runtime.act.deletions import Deletions
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.objects import Objects
from rightpool.runtime.act.queue_hold import hold, hold_wanted
from rightpool.runtime.act.refusals import PodRefusals, Refusals
from rightpool.runtime.act.services import ChildServices
from rightpool.runtime.act.template_checks import TemplateChecks, refused_of_made, with_variant
from rightpool.runtime.act.tracer import Tracer
from rightpool.runtime.act.trial_objects import TrialObjects
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observe.facts import ChildFacts, child_facts
from rightpool.runtime.observe.store import Store
from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import kind_of
from rightpool.workloads.refused_fields import by_name
from rightpool.workloads.template import InvalidTemplate

# Bytes of an object; etcd stores 1.5 MiB by default, including the fields that the API server adds.
LARGE: Final = 2**20

logger = logging.getLogger(__name__)


class Executor:
    """Thread-safe: commands of different jobs run in parallel, those of one job in one thread at a time."""

    def __init__(
        self,
        client: ClusterClient,
        store: Store,
        fence: Fence,
        children: Children,
        admissions: Admissions,
        sidecars: Sidecars,
        metrics: OperatorMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._store = store
        self._fence = fence
        self._children = children
        self._tracer = Tracer(store, fence, children, sidecars, clock)
        self._checkpointer = Checkpointer(store, fence, children, sidecars)
        self._refusals = Refusals(store, clock)
        self._deletions = Deletions(client, clock)
        self.services = ChildServices(client, fence, store, children, self._refusals, self._deletions, clock)
        self._companions = Companions(client, fence, children)
        self.trials = TrialObjects(client, fence, store, self._deletions)
        self._metrics = metrics
        self._pod_refusals = PodRefusals(client, store, clock)
        self.admissions = admissions
        self.objects = Objects(client, fence, store, admissions, clock)
        self._adopter = Adopter(client, fence, store, self._refusals)
        self.checks = TemplateChecks(client, fence, children, store, self._refusals, clock)

    def refusal(self, job: Job) -> ChildRefusal | None:
        """Why the job's current Revision can't be created; None if it can."""
        return self._not_installed(job) or self._refusals.current(job)

    def _not_installed(self, job: Job) -> ChildRefusal | None:
        """That the cluster does not have what the job runs as; None where it does."""
        resource = kind_of(job.spec.workload).resource
        if resource in self._store.watched:
            return None
        message = f"{resource.plural}.{resource.group} is not installed; the job starts within two minutes once it is"
        return ChildRefusal(0, job.generation, Reason.KIND_NOT_INSTALLED, message, 0.0)

    def why_unmade(self, job: Job) -> str | None:
        """Why pods of the current Revision can't be made; None where nothing is known to be in the way."""
        return self._pod_refusals.words(job)

    def begin(self) -> None:
        """A new cycle."""
        self.checks.begin()
        self.services.look()
        self._pod_refusals.begin()

    def checkpoint_error(self, job: Job) -> str | None:
        """The error of the current migration's request for a checkpoint."""
        return self._checkpointer.error(job)

    def trace_answer(self, job: Job) -> TraceAnswer | None:
        """What the sidecars say of the trace that is under way."""
        return self._tracer.answer(job)

    def forget(self, uids: set[str]) -> None:
        """Forget deleted jobs."""
        self._tracer.forget(uids)
        self._checkpointer.forget(uids)
        for uid in uids:
            self._refusals.discard(uid)
            self.services.forget(uid)
        self.checks.forget(uids)
        self.objects.forget(uids)
        self._pod_refusals.forget(uids)
        self._deletions.forget_old()

    def needed(self, job: Job, command: Command) -> bool:
        """Whether the cluster, according to the store, does not comply with the command yet. Sends no request."""
        if isinstance(command, Adopt):
            return self._adopter.needed(job)
        if isinstance(command, LetGo | FreeJob):
            return True
        if isinstance(command, HoldObject | ChangeObject | TurnObject | CheckObject | RenewJobs):
            return self.objects.needed(job, command)
        if self._not_installed(job) is not None:
            return False
        if isinstance(command, EnsureTrial | EndTrial):
            return self.trials.needed(job, command)
        if isinstance(command, EnsureRevision):
            return self._ensuring_needed(job, command)
        if isinstance(command, DirectTraffic):
            return not self.services.directs(job, command)
        if isinstance(command, EndRevision):
            child = self._to_end(job, command)
            return child is not None and not child.deleting
        if isinstance(command, CheckTemplate | CheckVariants):
            return self.checks.needed(job, command)
        if isinstance(command, AskWhyUnmade):
            return self._pod_refusals.needed(job, command)
        if isinstance(command, RequestTrace):
            return self._tracer.needed(job, command)
        return self._checkpointer.needed(job)

    def carry_out(self, job: Job, command: Command, pools: Mapping[str, Pool], term: int | None = None) -> None:
        """Carry out one command of the job's persisted state. Expected errors are logged; the next cycle tries again.

        `term` is the fence's before this process wrote the status in this cycle; None if the status was only read.
        """
        name = type(command).__name__
        try:
            done = self._carried_out(job, command, pools, term)
        except Fenced as error:
            logger.info("%s: not carried out: %s", name, error, extra={"job": str(job.key)})
            self._metrics.commands.labels(name, "refused").inc()
        except Conflict as error:
            logger.info("%s: conflict: %s", name, error.message, extra={"job": str(job.key)})
            self._metrics.commands.labels(name, "conflict").inc()
        except Unavailable as error:
            logger.warning("%s: the API server can't be reached: %s", name, error.message, extra={"job": str(job.key)})
            self._metrics.commands.labels(name, "unavailable").inc()
        except ClusterError as error:
            logger.warning("%s: %s", name, error.message, extra={"job": str(job.key)})
            self._metrics.commands.labels(name, "error").inc()
        else:
            if done:
                self._metrics.commands.labels(name, "done").inc()
        finally:
            self._store.tell(job.key)  # refusals, checks and the sidecars' answers are known by this alone

    def _carried_out(self, job: Job, command: Command, pools: Mapping[str, Pool], term: int | None) -> bool:
        """Whether anything was left to do."""
        if isinstance(command, Adopt):
            return self._adopter.adopt(job, command)
        if isinstance(command, LetGo | FreeJob):
            return self.objects.free(job, command)
        if isinstance(command, HoldObject | ChangeObject | TurnObject | CheckObject | RenewJobs):
            return self.objects.carry_out(job, command, pools)
        if isinstance(command, EnsureTrial):
            return self.trials.ensure(job, command)
        if isinstance(command, EndTrial):
            return self.trials.end(job, command)
        if isinstance(command, EnsureRevision):
            return self._ensure(job, command, pools, term)
        if isinstance(command, DirectTraffic):
            return self.services.direct(job, command)
        if isinstance(command, EndRevision):
            return self._end(job, command)
        if isinstance(command, CheckTemplate | CheckVariants):
            return self.checks.carry_out(job, command, pools)
        if isinstance(command, AskWhyUnmade):
            return self._pod_refusals.ask(job, command)
        if isinstance(command, RequestTrace):
            return self._tracer.request(job, command)
        return self._checkpointer.request(job, command)

    def _ensuring_needed(self, job: Job, command: EnsureRevision) -> bool:
        child = self._store.child(job.key, job.uid, command.ref.revision)
        if self._refusals.recent(job, command.ref.revision):
            return False
        queued = job.spec.queue_name is not None
        if child is None:
            if queued and command.suspend:
                return False  # its queue would start it
            # Without its pool no child can be built. The state machine chooses another placement.
            return job.observed.pool_problem is None or command.ref != job.state.revision
        if child.ended:
            return False
        if self.services.lacking(job, command, child):
            return True
        if queued:
            return hold_wanted(command.suspend, child) is not None
        return not _complies(job, command, child)

    # --- EnsureRevision ----------------------------------------------------------------------------------------------

    def _ensure(self, job: Job, command: EnsureRevision, pools: Mapping[str, Pool], term: int | None) -> bool:
        child = self._store.child(job.key, job.uid, command.ref.revision)
        if child is not None:
            return self.services.ensure(job, command, child) and self._match_suspend(job, command, child)
        pool = pools.get(command.ref.placement.pool)
        if pool is None:
            raise Fenced(f"pool {command.ref.placement.pool} is not there")
        kind = kind_of(job.spec.workload)
        try:
            # Created suspended: without pods it does no harm if another process leads by now. A later apply to exactly
            # this child starts its pods, and can't recreate a child that was deleted in the meantime.
            original = self._companions.original(job)
            manifest = self._children.build(job, command.ref, pool, suspend=True, original=original)
        except InvalidTemplate as error:
            message = with_variant(job, command.ref.vendor, error.message)
            return self._refuse(job, command.ref.revision, Reason.INVALID_TEMPLATE, message)
        refused = refused_of_made(self._client, kind, manifest)
        if refused is not None:
            message = with_variant(job, command.ref.vendor, refused)
            return self._refuse(job, command.ref.revision, Reason.INVALID_TEMPLATE, message)
        self._may_create(job, command, term)
        try:
            self._companions.create(job, command.ref, pool, original)
            created = self._create(job, kind, manifest)
        except InvalidTemplate as error:
            return self._refuse(job, command.ref.revision, Reason.INVALID_TEMPLATE, error.message)
        except (Invalid, Forbidden) as error:
            self._companions.wait_for(kind, manifest, error.message)
            words = by_name(self._not_stored(kind, manifest, error.message), manifest)
            message = with_variant(job, command.ref.vendor, words)
            return self._refuse(job, command.ref.revision, Reason.INVALID_TEMPLATE, message)
        if created is None:
            taken = name_taken_text(kind.resource, str(manifest["metadata"]["name"]))
            return self._refuse(job, command.ref.revision, Reason.NAME_TAKEN, taken)
        self._refusals.discard(job.uid)
        about = {"job": str(job.key), "pool": pool.name, "chips": command.ref.placement.chips}
        logger.info("created %s", created.name, extra=about)
        if self.services.ensure(job, command, created):
            self._match_suspend(job, command, created)
        return True

    def _may_create(self, job: Job, command: EnsureRevision, term: int | None) -> None:
        """The fence before a child is created.

        The start of its pods is fenced separately, and the next leader ends a child that should not exist. So this
        process's own write of the status replaces reading it, and the store replaces listing pods. In a queue Kueue may
        start the child at any time, so there the full checks come first.
        """
        queued = job.spec.queue_name is not None
        if term is None or queued:
            self._fence.persisted(job, command)
        else:
            self._fence.leader_since(term)
        if queued:
            self._fence.single_writer(job, command, None)
        alive = [number for number, state in self._store.revisions(job.key, job.uid).items() if state.active]
        if alive and work_of(job.spec).one_writer:
            raise Fenced(f"pods of r{min(alive)} are still there")

    def _create(self, job: Job, kind: Kind[Any], manifest: Mapping[str, Any]) -> ChildFacts | None:
        """Create or adopt the Revision's child; None if a foreign object has its name."""
        body = create_or_get(self._client, kind.resource, manifest)
        child = child_facts(kind, body)
        if child is not None and child.named and child.owner != job.uid:
            raise Fenced(f"{child.name} of an earlier job of this name is still there")
        if child is None or child.owner != job.uid:
            return None
        self._store.assume(kind.resource, body)
        return child

    def _not_stored(self, kind: Kind[Any], manifest: Mapping[str, Any], message: str) -> str:
        """The message about a rejected child.

        If an object is too large, the API server retries without its managed fields and may then report an unrelated
        error. A dry run stores nothing, so it succeeds for such an object and fails for an invalid one.
        """
        size = len(json.dumps(manifest, ensure_ascii=False).encode())
        if size < LARGE:
            return message
        try:
            self._client.create(kind.resource, manifest, dry_run=True, strict=True)
        except AlreadyExists:
            return message
        except (Invalid, Forbidden) as error:
            return error.message
        return (
            f"the child has {size} bytes, which is too large to be stored: make the pod templates of "
            f"spec.workload.{kind.field} smaller, say by a ConfigMap ({message})"
        )

    def _match_suspend(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        if child.ended:
            return False
        if job.spec.queue_name is not None:
            return self._match_hold(job, command, child)
        wanted = command.suspend
        if _complies(job, command, child):
            return False
        self._fence.persisted(job, command)
        if not wanted and child.state.suspended:
            self._fence.single_writer(job, command, child.members)
            self._companions.give(job, child)
        intent = {
            "metadata": {"name": child.name, "namespace": child.namespace, "uid": child.uid},
            **child.kind.suspension(wanted, command.ref.placement, child.state.unit),
        }
        resource = child.kind.resource
        self._store.assume(resource, self._client.apply(resource, intent))
        what = "suspended" if wanted else "started" if child.state.suspended else "scaled"
        logger.info("%s %s", what, child.name, extra={"job": str(job.key)})
        return True

    def _match_hold(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        wanted = hold_wanted(command.suspend, child)
        if wanted is None:
            return False
        self._fence.persisted(job, command)
        if not wanted:
            self._fence.single_writer(job, command, child.members)
        self._store.assume(child.kind.resource, hold(self._client, child, wanted, command.ref.placement))
        if wanted != child.held:
            logger.info("%s %s in its queue", "held" if wanted else "released", child.name, extra={"job": str(job.key)})
        return True

    def _refuse(self, job: Job, revision: int, reason: Reason, message: str) -> bool:
        self._refusals.add(job, revision, reason, message)
        return False

    # --- what has ended ----------------------------------------------------------------------------------------------

    def expiring(self, job: Job) -> ChildFacts | None:
        """The child of a job that has ended, where it is to be deleted some time and Kubernetes does not know it yet.

        A child never has the time from the start: it would be gone, and started anew, where its end was not recorded.
        """
        if job.state.finished is None or job.deleting or job.spec.workload_ref is not None or _lifetime(job) is None:
            return None
        revision = job.state.revision
        child = None if revision is None else self._store.child(job.key, job.uid, revision.revision)
        if child is None or child.deleting or child.state.expires:
            return None
        return child if child.state.succeeded or child.state.failed else None

    def expire(self, job: Job, child: ChildFacts) -> None:
        """Have Kubernetes delete the child in its time. What goes wrong is tried again in the next cycle."""
        seconds = _lifetime(job)
        assert seconds is not None
        resource = child.kind.resource
        intent = {
            "metadata": {"name": child.name, "namespace": child.namespace, "uid": child.uid},
            **child.kind.expiry(seconds),
        }
        try:
            self._fence.leader()
            self._store.assume(resource, self._client.apply(resource, intent))
        except (Fenced, ClusterError) as error:
            logger.info("%s is not set to expire: %s", child.name, error, extra={"job": str(job.key)})

    # --- EndRevision -------------------------------------------------------------------------------------------------

    def _to_end(self, job: Job, command: EndRevision) -> ChildFacts | None:
        own = self._store.child(job.key, job.uid, command.revision)
        return own or self._store.earlier_child(job.key, job.uid, command.revision)

    def _end(self, job: Job, command: EndRevision) -> bool:
        child = self._to_end(job, command)
        if child is None or child.deleting:
            return False
        if not self._deletions.may_delete(child.uid):
            return False
        answers = job.spec.workload.server is not None and child.owner == job.uid
        if answers and not self.services.spares(job, command.revision):
            raise Fenced(f"requests may still go to r{command.revision}")
        # Read before the check that this ProfiledJob exists, so that another owner can only be an earlier one.
        resource = child.kind.resource
        try:
            body = self._client.get(resource, child.name, job.key.namespace)
        except NotFound:
            return False  # the watch reports the deletion
        self._fence.persisted(job, command)
        fresh = child_facts(child.kind, body)
        if fresh is None or not (fresh.owner == job.uid or fresh.named):
            raise Fenced(f"{child.name} has another owner")
        self._store.assume(resource, body)
        if (fresh.state.succeeded and fresh.owner == job.uid) or fresh.deleting:
            return False
        self._deletions.delete(resource, body)
        self.services.forget(child.uid)
        logger.info("ended %s", child.name, extra={"job": str(job.key)})
        return True


def _complies(job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
    """Whether the child is stopped or runs as it is to, with as many pods where nobody else scales it."""
    server = job.spec.workload.server
    if command.suspend or child.state.suspended:
        return command.suspend == child.state.suspended
    scaled_elsewhere = server is not None and server.scaled_elsewhere
    return scaled_elsewhere or child.state.pods in (None, command.ref.placement.replicas)


def _lifetime(job: Job) -> int | None:
    """Seconds after the end of the job when its child is to be deleted; None: it is kept."""
    workload = job.spec.workload
    return kind_of(workload).lifetime(workload.chosen)
