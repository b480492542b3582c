"""Objects that somebody else has made: stopped, changed where they are, and resumed.

Each write is computed from the object as the API server has it, and sent for exactly that version of it. What the
operator has stopped says so in an annotation, and nothing else is ever resumed. What is in a queue is stopped and
started by its queue: it is changed when that has taken its quota back, and started when it has read the change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from rightpool.api.adopted_object import MAX_MANIFEST
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import JOBS
from rightpool.api.revision import Revision
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import Forbidden, Invalid, NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import FIELD_MANAGER, LABEL_ADOPT
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import ChildRefusal
from rightpool.planning.moves.commands import (
    ChangeObject,
    CheckObject,
    FreeJob,
    HoldObject,
    LetGo,
    RenewJobs,
    TurnObject,
)
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.admissions import Admissions
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.queue_hold import activate, queue_workloads
from rightpool.runtime.act.remaking import Remaking
from rightpool.runtime.act.template_checks import refused_as_new
from rightpool.runtime.observe.facts import ChildFacts, member_facts, meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.in_place import (
    held,
    is_held,
    manifest_of,
    marks,
    moved,
    operations,
    queue_of,
    requeued,
    resumed,
    turned,
    unqueued,
    with_original,
)
from rightpool.workloads.kinds.kind import Kind, Unable, adoption_of, condition_is_true
from rightpool.workloads.refused_fields import by_name
from rightpool.workloads.template import InvalidTemplate

ObjectCommand: TypeAlias = HoldObject | ChangeObject | TurnObject | CheckObject | RenewJobs
AGAIN_SECONDS: Final = 60.0  # until what was refused is asked for again
_RESERVED: Final = "QuotaReserved"  # of a Workload
_NOT_SEEN: Final = "admission may not have seen yet what new pods of {} get"
LOOK_SECONDS: Final = 10.0  # between two looks at the Jobs of an object whose pods have no node

logger = logging.getLogger(__name__)


class Objects:
    """Thread-safe where commands of one job are carried out in one thread at a time."""

    def __init__(
        self, client: ClusterClient, fence: Fence, store: Store, admissions: Admissions, clock: Callable[[], float]
    ) -> None:
        self._client = client
        self._fence = fence
        self._store = store
        self._admissions = admissions
        self._clock = clock
        self._checked: dict[str, int] = {}  # by uid of the ProfiledJob, the Revision that was asked about last
        self._refusals: dict[str, ChildRefusal] = {}
        self.remaking = Remaking(client, fence, store)
        self._looked: dict[str, float] = {}  # by uid of the ProfiledJob, when its object's Jobs were looked at last

    def checked(self, job: Job) -> int:
        """Number of the Revision that the API server was asked about last; 0: about none."""
        return self._checked.get(job.uid, 0)

    def refusal(self, job: Job) -> ChildRefusal | None:
        """Why the object can't become the Revision that was asked for last; None where nothing speaks against it."""
        return self._refusals.get(job.uid)

    def forget(self, uids: set[str]) -> None:
        """Forget deleted jobs."""
        for uid in uids:
            self._checked.pop(uid, None)
            self._refusals.pop(uid, None)
            self._looked.pop(uid, None)

    def needed(self, job: Job, command: ObjectCommand) -> bool:
        """Whether the object, as it is seen, does not comply yet."""
        child = self._store.adopted_by(job.key, job.uid)
        if child is None or child.ended or self._refused_lately(job, command):
            return False
        if isinstance(command, CheckObject):
            return self.checked(job) != command.target.revision
        if isinstance(command, ChangeObject):
            return child.held
        if isinstance(command, TurnObject):
            return not (child.held or child.state.suspended) and child.revision != command.ref.revision
        if isinstance(command, RenewJobs):
            return not child.held and self._clock() - self._looked.get(job.uid, -LOOK_SECONDS) >= LOOK_SECONDS
        assert child.adopted is not None
        queued = child.adopted.queue is not None
        stopped = child.held and child.state.suspended if queued else child.held or child.state.suspended
        return not stopped and child.revision == command.ref.revision

    def carry_out(self, job: Job, command: ObjectCommand, pools: Mapping[str, Pool]) -> bool:
        """Whether something was done."""
        child = self._store.adopted_by(job.key, job.uid)
        if child is None:
            return False
        try:
            body = self._client.get(child.kind.resource, child.name, child.namespace)
        except NotFound:
            return isinstance(command, ChangeObject) and self._make(job, command, child, pools)
        if meta(body)["uid"] != child.uid:
            return self.remaking.give_up(job, child, body)
        fresh = self._fence.persisted(job, command)
        if meta(body).get("deletionTimestamp"):
            raise Fenced(f"{child.name} is being deleted")
        if isinstance(command, CheckObject):
            return self._check(job, command, child, body, pools)
        if isinstance(command, RenewJobs):
            return self._renew(job, child, body, pools)
        if isinstance(command, TurnObject):
            return self._turn(job, command, child, body, pools)
        if isinstance(command, HoldObject):
            return self._hold(job, command, child, body, pools)
        return self._change(job, command, child, body, pools, fresh)

    def free(self, job: Job, command: LetGo | FreeJob) -> bool:
        """Take the finalizer off the ProfiledJob, or delete it; its object is resumed where it is held, and loses its
        marks, when that is gone."""
        if isinstance(command, FreeJob):
            return self.remaking.free(job, command)
        child = self._store.adopted_by(job.key, job.uid)
        self._fence.persisted(job, command)
        if child is not None and child.adopted is not None and child.adopted.asked is not None:
            path = child.kind.resource.path(child.namespace, child.name)
            patch = {"metadata": {"uid": child.uid, "labels": {LABEL_ADOPT: None}}}
            query = {"fieldManager": FIELD_MANAGER}
            answer = self._client.request("PATCH", path, query=query, body=patch, content=MERGE_CONTENT)
            self._store.assume(child.kind.resource, answer)
        with suppress(NotFound):
            self._client.delete(PROFILED_JOBS, job.key.name, job.key.namespace, uid=job.uid)
        logger.info("released %s", job.spec.workload_ref, extra={"job": str(job.key)})
        return True

    def _check(
        self, job: Job, command: CheckObject, child: ChildFacts, body: Mapping[str, Any], pools: Mapping[str, Pool]
    ) -> bool:
        """Nothing is stored. What is running can't be changed, so the changed object is asked for as a new one."""
        here, there, kind = job.state.revision, command.target, child.kind
        assert here is not None
        try:
            stopped = held(kind, body, here, pools.get(here.placement.pool))
            pool = pools.get(there.placement.pool)
            _check_size(job, kind, body, here, there)
            if queue_of(body) is None:
                after = adoption_of(kind).anew(moved(kind, stopped, there, pool))
            else:
                if not queue_workloads(self._client, child):
                    raise Unable(f"queue {queue_of(body)} is to stop it, and Kueue has no Workload of it")
                changed = requeued(kind, stopped, there, pools, pool)
                after = adoption_of(kind).anew(unqueued(changed, nodes=False))
            self._client.patch(kind.resource, child.name, child.namespace, operations(body, stopped), dry_run=True)
            refused = refused_as_new(self._client, kind, after)
        except (Unable, InvalidTemplate) as error:
            refused = error.message
        except (Invalid, Forbidden) as error:
            refused = by_name(error.message, body)
        self._refusals.pop(job.uid, None)
        if refused is not None:
            self._refuse(job, there.revision, refused)
        self._checked[job.uid] = there.revision
        self._store.wake()  # the migration waits for it
        return refused is None

    def _hold(
        self, job: Job, command: HoldObject, child: ChildFacts, body: Mapping[str, Any], pools: Mapping[str, Pool]
    ) -> bool:
        try:
            after = held(child.kind, body, command.ref, pools.get(command.ref.placement.pool))
            written = self._write(job, child, body, after, "stopped")
            return activate(self._client, child, False) if queue_of(body) is not None else written
        except Unable as error:
            return self._refuse(job, command.ref.revision, error.message)

    def _turn(
        self, job: Job, command: TurnObject, child: ChildFacts, body: Mapping[str, Any], pools: Mapping[str, Pool]
    ) -> bool:
        here, ref, kind = job.state.revision, command.ref, child.kind
        if here is None or kind.observe(body).suspended or is_held(body):
            raise Fenced(f"{child.name} does not run")
        try:
            after = turned(kind, body, here, pools.get(here.placement.pool), ref, pools.get(ref.placement.pool))
            if not self._admissions.ready(job, child, ref.revision, ref.placement):
                raise Fenced(_NOT_SEEN.format(child.name))
            return self._write(job, child, body, after, "changed")
        except (Unable, InvalidTemplate, Invalid, Forbidden) as error:
            return self._refuse(job, ref.revision, by_name(error.message, body))

    def _change(
        self,
        job: Job,
        command: ChangeObject,
        child: ChildFacts,
        body: Mapping[str, Any],
        pools: Mapping[str, Pool],
        fresh: StoredJob,
    ) -> bool:
        ref, migration, kind = command.ref, job.state.migration, child.kind
        state = kind.observe(body)
        if state.suspended:
            self._without_pods(child)
            if state.stopping:
                raise Fenced(f"the controller of {child.name} has not seen its pods end")
        if queue_of(body) is not None:
            return self._change_in_queue(job, command, child, body, pools)
        if ref is None:
            return self._write(job, child, body, resumed(kind, body), "resumed")
        try:
            noted = with_original(kind, body, None if job.state.adopted is None else job.state.adopted.original)
            after = moved(kind, noted, ref, pools.get(ref.placement.pool))
            if not self._admissions.ready(job, child, ref.revision, ref.placement):
                raise Fenced(_NOT_SEEN.format(child.name))
            try:
                return self._write(job, child, body, after, "resumed")
            except (Invalid, Forbidden):
                if not self.remaking.allowed(job, fresh):
                    raise
                return self.remaking.begin(job, child, body, after, fresh)
        except (Unable, InvalidTemplate, Invalid, Forbidden) as error:
            if migration is not None and not migration.rolling_back:
                return self._refuse(job, ref.revision, by_name(error.message, body))
            # There is nothing to go back to: better it runs as it is than not at all.
            logger.warning("%s is resumed as it is: %s", child.name, error.message, extra={"job": str(job.key)})
            return self._write(job, child, body, resumed(kind, body), "resumed")

    def _make(self, job: Job, command: ChangeObject, child: ChildFacts, pools: Mapping[str, Pool]) -> bool:
        ref, migration = command.ref, job.state.migration
        try:
            return self.remaking.make(job, command, child, pools, changed=True)
        except (Unable, InvalidTemplate, Invalid, Forbidden) as error:
            if ref is not None and migration is not None and not migration.rolling_back:
                return self._refuse(job, ref.revision, error.message)
            logger.warning("%s is made as it was: %s", child.name, error.message, extra={"job": str(job.key)})
            return self.remaking.make(job, command, child, pools, changed=False)

    def _change_in_queue(
        self, job: Job, command: ChangeObject, child: ChildFacts, body: Mapping[str, Any], pools: Mapping[str, Pool]
    ) -> bool:
        """Kueue compares an object with what it has read of it only while that has no quota. Where it started one that
        it has not read, it would do so where the object was, and count it as ended when that contradicts."""
        ref, kind, migration = command.ref, child.kind, job.state.migration
        if ref is not None and kind.observe(body).suspended:
            workloads = queue_workloads(self._client, child) or ()
            if any(condition_is_true(_conditions(one), _RESERVED) for one in workloads):
                raise Fenced(f"the queue of {child.name} has not taken its quota back")
            try:
                after = requeued(kind, body, ref, pools, pools.get(ref.placement.pool))
                ready = self._admissions.ready(job, child, ref.revision, ref.placement)
                if operations(body, after):
                    return self._write(job, child, body, after, "changed")
                if not ready:
                    raise Fenced(_NOT_SEEN.format(child.name))
                read = [marks(one["spec"].get("podSets")) for one in workloads]
                if not read or any(one != marks(body["spec"]) for one in read):
                    raise Fenced(f"Kueue has not read the change of {child.name}")
            except (Unable, InvalidTemplate, Invalid, Forbidden) as error:
                if migration is not None and not migration.rolling_back:
                    return self._refuse(job, ref.revision, by_name(error.message, body))
                logger.warning("%s goes on as it is: %s", child.name, error.message, extra={"job": str(job.key)})
        activate(self._client, child, True)
        return self._write(job, child, body, resumed(kind, body), "resumed")

    def _renew(self, job: Job, child: ChildFacts, body: Mapping[str, Any], pools: Mapping[str, Pool]) -> bool:
        self._looked[job.uid] = self._clock()
        made = adoption_of(child.kind).jobs(body)
        if made is None:
            return False
        job_set = self._client.get(made.resource, made.name, child.namespace)
        found = self._client.list_all(JOBS, child.namespace, labels="=".join(made.label))
        keys = {key for pool in pools.values() for key in pool.node_selector}
        outdated = [meta(one) for one in made.outdated(job_set, found, keys)]
        for about in outdated:
            self._fence.leader()
            version = about["resourceVersion"]  # since then a pod of it may have started
            self._client.delete(JOBS, about["name"], child.namespace, uid=about["uid"], resource_version=version)
            logger.info("deleted Job %s, which was held to another pool", about["name"], extra={"job": str(job.key)})
        return bool(outdated)

    def _without_pods(self, child: ChildFacts) -> None:
        """The checkpoint has one writer: no pod of the object may be left, also none that is ending."""
        assert child.adopted is not None
        label, value = child.adopted.members
        for body in self._client.list_all(PODS, child.namespace, labels=f"{label}={value}"):
            pod = member_facts(body, child)
            if pod is not None and not pod.done:
                raise Fenced(f"pod {pod.name} of {child.name} is still there")
        self._fence.leader()

    def _write(
        self, job: Job, child: ChildFacts, before: Mapping[str, Any], after: Mapping[str, Any], what: str
    ) -> bool:
        patch, resource = operations(before, after), child.kind.resource
        if patch:
            self._store.assume(resource, self._client.patch(resource, child.name, child.namespace, patch))
            logger.info("%s %s", what, child.name, extra={"job": str(job.key)})
        self._refusals.pop(job.uid, None)
        return bool(patch)

    def _refused_lately(self, job: Job, command: ObjectCommand) -> bool:
        ref = command.target if isinstance(command, CheckObject) else command.ref
        refusal = self._refusals.get(job.uid)
        same = refusal is not None and ref is not None and refusal.revision == ref.revision
        return same and refusal is not None and self._clock() - refusal.at < AGAIN_SECONDS

    def _refuse(self, job: Job, revision: int, message: str) -> bool:
        logger.info("%s: %s", Reason.CHANGE_REFUSED.value, message, extra={"job": str(job.key)})
        self._refusals[job.uid] = ChildRefusal(revision, job.generation, Reason.CHANGE_REFUSED, message, self._clock())
        self._store.wake()
        return False


def _check_size(job: Job, kind: Kind[Any], body: Mapping[str, Any], here: Revision, there: Revision) -> None:
    """Raises Unable where the object is to have another size than it has and can't get that."""
    able, sizes = job.able, [(at.replicas, at.chips_per_replica) for at in (here.placement, there.placement)]
    if able is None or sizes[0] == sizes[1]:
        return
    if not able.resize:
        raise Unable(f"a {able.kind} keeps its size, and {there.placement.replicas} pods are another")
    if able.anew and (size := len(manifest_of(kind, body))) > MAX_MANIFEST:
        raise Unable(f"to be made anew it may have {MAX_MANIFEST} characters, and has {size}")


def _conditions(body: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (body.get("status") or {}).get("conditions") or ()
