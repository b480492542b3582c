"""The executor: carries out the commands of a persisted state, each only where the cluster does not comply yet.

Called after the status that asks for the commands is safely stored, and again in every later cycle: it may be stopped
between any two requests, and the next call goes on from what it finds.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rightpool.api.choices import CheckpointMode
from rightpool.api.conditions import Reason
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound, Unavailable
from rightpool.cluster.resources import JOBS, SERVICES, Resource
from rightpool.cluster.sidecars import Sidecars
from rightpool.hardware.pool import Pool
from rightpool.planning.commands import Command, EndRevision, EnsureRevision, RequestCheckpoint
from rightpool.planning.snapshot import JobState
from rightpool.runtime.children import Children
from rightpool.runtime.facts import ChildFacts, child_facts, controlled_by_job, controller_of, meta
from rightpool.runtime.fence import Fence, Refused
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.store import Store
from rightpool.workloads.job import suspend_wanted
from rightpool.workloads.template import InvalidTemplate

REFUSAL_SECONDS: Final = 60.0  # a refused child is tried again after that: a quota or an admission policy may change
LARGE: Final = 2**20  # bytes of an object; etcd stores half as much again by default, with what the API server adds
END_SECONDS: Final = 5.0  # an answered deletion is not repeated while the watch catches up

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the API server does not take a Revision's child. generation: of the spec that it was built from."""

    revision: int
    generation: int
    reason: Reason
    message: str
    at: float


class Executor:
    """Thread-safe: jobs are carried out side by side, each by one thread at a time."""

    def __init__(
        self,
        client: ClusterClient,
        store: Store,
        fence: Fence,
        children: Children,
        sidecars: Sidecars,
        metrics: OperatorMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._store = store
        self._fence = fence
        self._children = children
        self._sidecars = sidecars
        self._metrics = metrics
        self._clock = clock
        self._refusals: dict[str, Refusal] = {}  # by uid of the ProfiledJob
        self._checkpoints: dict[str, tuple[str, str | None]] = {}  # uid → request id, what went wrong
        self._ended: dict[str, float] = {}  # uid of a child or Service → when its deletion was answered
        self._served: set[str] = set()  # uids of children that have the Service they need

    def refusal(self, job: JobState) -> Refusal | None:
        """Why the job's present Revision can't be created."""
        refusal = self._refusals.get(job.uid)
        return refusal if refusal is not None and refusal.generation == job.generation else None

    def checkpoint_error(self, job: JobState) -> str | None:
        """What went wrong with the present migration's request for a checkpoint."""
        asked = self._checkpoints.get(job.uid)
        return asked[1] if asked is not None and job.migration is not None and asked[0] == job.migration.id else None

    def forget(self, uids: set[str]) -> None:
        """Jobs that are gone."""
        for uid in uids:
            self._refusals.pop(uid, None)
            self._checkpoints.pop(uid, None)
        now = self._clock()
        self._ended = {uid: at for uid, at in self._ended.items() if now - at < END_SECONDS}

    def needed(self, job: JobState, command: Command) -> bool:
        """Whether the cluster, as the store shows it, does not comply with the command yet. Costs no request."""
        if isinstance(command, EnsureRevision):
            child = self._store.child(job.key, job.uid, command.ref.revision)
            refusal = self.refusal(job)
            refused = refusal is not None and refusal.revision == command.ref.revision
            if refused and refusal is not None and self._clock() - refusal.at < REFUSAL_SECONDS:
                return False
            if child is None:
                # Nothing can be made without its pool. The conditions say so, and the state machine goes elsewhere.
                return job.absent is None or command.ref != job.ref
            wanted = suspend_wanted(command.suspend, job.spec.queue_name)
            if child.deleting or child.succeeded or child.failed:
                return False
            return self._unserved(child) or (wanted is not None and wanted != child.suspended)
        if isinstance(command, EndRevision):
            child = self._to_end(job, command)
            return child is not None and not child.deleting
        return job.spec.checkpoint.mode is CheckpointMode.SIGNAL

    def carry_out(self, job: JobState, command: Command, pools: Mapping[str, Pool]) -> None:
        """One command of the job's persisted state. Trouble that is expected is logged and met again next cycle."""
        name = type(command).__name__
        try:
            if isinstance(command, EnsureRevision):
                done = self._ensure(job, command, pools)
            elif isinstance(command, EndRevision):
                done = self._end(job, command)
            else:
                done = self._request_checkpoint(job, command)
        except Refused as error:
            logger.info("%s: not carried out: %s", name, error, extra={"job": str(job.key)})
            self._metrics.commands.labels(name, "refused").inc()
        except Conflict as error:
            logger.info("%s: somebody was faster: %s", name, error.message, extra={"job": str(job.key)})
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

    # --- EnsureRevision ----------------------------------------------------------------------------------------------

    def _ensure(self, job: JobState, command: EnsureRevision, pools: Mapping[str, Pool]) -> bool:
        child = self._store.child(job.key, job.uid, command.ref.revision)
        if child is not None:
            return self._serve(job, command, child) and self._match_suspend(job, command, child)
        pool = pools.get(command.ref.placement.pool)
        if pool is None:
            raise Refused(f"pool {command.ref.placement.pool} is not there")
        try:
            # Created suspended: a Job without pods harms nobody, should we turn out to be late. What starts pods is
            # the resuming of exactly this Job, which cannot bring back one that somebody has deleted since.
            manifest = self._children.build(job, command.ref, pool, suspend=True)
        except InvalidTemplate as error:
            return self._refuse(job, command, Reason.INVALID_TEMPLATE, error.message)
        self._fence.persisted(job, command)
        self._fence.single_writer(job.key, command, None)
        try:
            self._client.create(JOBS, manifest, dry_run=True)
        except AlreadyExists:
            pass  # by an earlier attempt of ours; `_create` looks whose it is
        except (Invalid, Forbidden) as error:
            return self._refuse(job, command, Reason.INVALID_TEMPLATE, error.message)
        try:
            created = self._create(job, manifest)
        except (Invalid, Forbidden) as error:
            return self._refuse(job, command, Reason.INVALID_TEMPLATE, _not_stored(manifest, error.message))
        if created is None:
            return self._refuse(job, command, Reason.NAME_TAKEN, _taken("Job", str(manifest["metadata"]["name"])))
        self._refusals.pop(job.uid, None)
        logger.info(
            "created %s",
            created.name,
            extra={"job": str(job.key), "pool": pool.name, "chips": command.ref.placement.chips},
        )
        if self._serve(job, command, created):
            self._match_suspend(job, command, created)
        return True

    def _create(self, job: JobState, manifest: Mapping[str, Any]) -> ChildFacts | None:
        """The Revision's Job; None where its name is somebody else's."""
        body = self._create_or_get(JOBS, manifest)
        child = child_facts(body)
        if child is not None and child.named and child.owner != job.uid:
            raise Refused(f"{child.name} of an earlier job of this name is still there")
        if child is None or child.owner != job.uid:
            return None
        self._store.assume(JOBS, body)
        return child

    def _unserved(self, child: ChildFacts) -> bool:
        """Whether it may still lack the Service that its pods find each other by. A running one has had it before."""
        return child.pods > 1 and child.suspended and child.uid not in self._served

    def _serve(self, job: JobState, command: EnsureRevision, child: ChildFacts) -> bool:
        """Whether the child has the Service that it needs, which is its own: whoever deletes the child, and whenever we
        are killed, it goes along."""
        if not self._unserved(child) or child.deleting:
            return True
        manifest = self._children.service(job, command.ref, child)
        if manifest is not None:
            self._fence.persisted(job, command)
            service = self._create_or_get(SERVICES, manifest)
            if controlled_by_job(meta(service), child.name):
                self._end_left_over(job, service, child)
            elif controller_of(meta(service)) != child.uid:
                return self._refuse(job, command, Reason.NAME_TAKEN, _taken("Service", str(meta(service)["name"])))
        self._refusals.pop(job.uid, None)
        self._served.add(child.uid)
        return True

    def _end_left_over(self, job: JobState, service: Mapping[str, Any], child: ChildFacts) -> None:
        """The Service of a Job that had the child's name, before the garbage collector sees to it; nothing where it is
        the child's own. A name is one Job's at a time: while the child has it, another owner can only be an earlier."""
        about = meta(service)
        if controller_of(about) == child.uid:
            return
        try:
            living = self._client.get(JOBS, child.name, child.namespace)
        except NotFound as error:
            raise Refused(f"Job {child.name} is gone") from error
        if meta(living).get("uid") != child.uid:
            raise Refused(f"Job {child.name} is another one by now")
        if self._to_be_ended(str(about["uid"])):
            self._fence.leader()
            self._delete(SERVICES, service)
            logger.info("ended Service %s of an earlier child", about["name"], extra={"job": str(job.key)})
        raise Refused(f"Service {about['name']} of an earlier {child.name} is still there")

    def _create_or_get(self, resource: Resource, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """Never an apply: what is there may be somebody else's, and would be ours by that."""
        try:
            return self._client.create(resource, manifest)
        except AlreadyExists:
            return self._client.get(resource, manifest["metadata"]["name"], manifest["metadata"]["namespace"])

    def _match_suspend(self, job: JobState, command: EnsureRevision, child: ChildFacts) -> bool:
        wanted = suspend_wanted(command.suspend, job.spec.queue_name)
        if wanted is None or wanted == child.suspended or child.deleting or child.succeeded or child.failed:
            return False
        self._fence.persisted(job, command)
        if not wanted:
            self._fence.single_writer(job.key, command, child.uid)
        intent: dict[str, Any] = {
            "metadata": {"name": child.name, "namespace": child.namespace, "uid": child.uid},
            "spec": {"suspend": wanted},
        }
        self._store.assume(JOBS, self._client.apply(JOBS, intent))
        logger.info("%s %s", "suspended" if wanted else "started", child.name, extra={"job": str(job.key)})
        return True

    def _refuse(self, job: JobState, command: EnsureRevision, reason: Reason, message: str) -> bool:
        known = self._refusals.get(job.uid)
        self._refusals[job.uid] = Refusal(command.ref.revision, job.generation, reason, message, self._clock())
        if known is None or known.message != message:
            logger.info("%s: %s", reason.value, message, extra={"job": str(job.key)})
            self._store.wake()
        return False

    # --- EndRevision -------------------------------------------------------------------------------------------------

    def _to_end(self, job: JobState, command: EndRevision) -> ChildFacts | None:
        own = self._store.child(job.key, job.uid, command.revision)
        return own or self._store.earlier_child(job.key, job.uid, command.revision)

    def _end(self, job: JobState, command: EndRevision) -> bool:
        child = self._to_end(job, command)
        if child is None or child.deleting:
            return False
        if not self._to_be_ended(child.uid):
            return False
        # Before it is seen that this ProfiledJob is the living one, so that another owner can only be an earlier one.
        try:
            body = self._client.get(JOBS, child.name, job.key.namespace)
        except NotFound:
            return False  # the watch will tell
        self._fence.persisted(job, command)
        fresh = child_facts(body)
        if fresh is None or not (fresh.owner == job.uid or fresh.named):
            raise Refused(f"Job {child.name} belongs to somebody else")
        self._store.assume(JOBS, body)
        if (fresh.succeeded and fresh.owner == job.uid) or fresh.deleting:
            return False
        self._delete(JOBS, body)
        self._served.discard(child.uid)
        logger.info("ended %s", child.name, extra={"job": str(job.key)})
        return True

    def _to_be_ended(self, uid: str) -> bool:
        """Whether its deletion was not just answered."""
        ended_at = self._ended.get(uid)
        return ended_at is None or self._clock() - ended_at >= END_SECONDS

    def _delete(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Exactly the object that was looked at, as it was then."""
        about = meta(body)
        uid, version = str(about["uid"]), str(about["resourceVersion"])
        try:
            self._client.delete(resource, about["name"], about["namespace"], uid=uid, resource_version=version)
        except NotFound:
            pass
        self._ended[uid] = self._clock()

    # --- RequestCheckpoint -------------------------------------------------------------------------------------------

    def _request_checkpoint(self, job: JobState, command: RequestCheckpoint) -> bool:
        if job.spec.checkpoint.mode is not CheckpointMode.SIGNAL:
            return False  # Periodic: the program saves by itself, and its next save is awaited
        pods = [pod for pod in self._store.pods(job.key, command.revision) if not pod.done and not pod.deleting]
        addresses = [(pod.name, pod.ip) for pod in pods if pod.ip]
        if not addresses:
            self._checkpoints[job.uid] = (command.id, "no pod has an address yet")
            return False
        self._fence.leader()
        token = self._children.token(job.uid, command.revision)
        problems = self._sidecars.request_checkpoint(addresses, token, command.id)
        summary = None
        if problems:
            name, problem = min(problems.items())
            summary = f"{len(problems)} of {len(addresses)} pods did not take the request ({name}: {problem})"
            logger.info("checkpoint %s: %s", command.id, summary, extra={"job": str(job.key)})
        self._checkpoints[job.uid] = (command.id, summary)
        return not problems


def _not_stored(manifest: Mapping[str, Any], message: str) -> str:
    """What the API server says of an object that its dry run took. A dry run stores nothing, and does not find what is
    too large; and where that is so, the API server tries once more with less, and complains of its own changes."""
    size = len(json.dumps(manifest, ensure_ascii=False).encode())
    if size < LARGE:
        return message
    return (
        f"the child has {size} bytes, which is too large to be stored: make spec.workload.job.template smaller, say by "
        f"a ConfigMap ({message})"
    )


def _taken(kind: str, name: str) -> str:
    return (
        f"{kind} {name} exists and is not this ProfiledJob's: delete it, or give the ProfiledJob another name. What is "
        "somebody else's is never changed"
    )
