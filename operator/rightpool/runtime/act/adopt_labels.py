"""The label rightpool.dev/adopt of objects that run already: what has it gets a ProfiledJob, which belongs to it.

Objects that have the label and are marked as no ProfiledJob's yet are listed some times a minute: the list is nearly
always empty. What is marked is watched, so that a label that is taken off is seen at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from rightpool.api.choices import AdaptationMode, AdoptionChange
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.api.resources import MAX_NAME, PROFILED_JOB_NAME
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import FIELD_MANAGER, LABEL_ADOPT, LABEL_JOB
from rightpool.planning.jobs.job import JobKey
from rightpool.reporting.events import Event
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.adoption import controlled_text, mark
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.queue_hold import activate
from rightpool.runtime.observe.facts import ChildFacts, meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.in_place import is_held, let_go, operations, queue_of
from rightpool.workloads.kinds.registry import adoptable_text, child_resources, kind_at
from rightpool.workloads.metadata import controller_reference

LIST_SECONDS: Final = 15.0
CHANGES: Final = {"recommend": AdoptionChange.RECOMMEND, "auto": AdoptionChange.SUSPEND}
"""What the label may say, and what of that becomes spec.adoption.change."""

logger = logging.getLogger(__name__)


class AdoptLabels:
    """Used by the planner's thread alone, of the process that leads."""

    def __init__(
        self,
        client: ClusterClient,
        fence: Fence,
        store: Store,
        post: Callable[[Event], object],
        namespaces: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._fence = fence
        self._store = store
        self._post = post
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._clock = clock
        self._due = 0.0

    def follow(self) -> None:
        """Make the ProfiledJobs of objects that have the label, and end those of objects that have it no more."""
        now = self._clock()
        if now >= self._due:
            self._due = now + LIST_SECONDS
            for resource in child_resources():
                if resource in self._store.watched:
                    self._try(self._take_all, resource)
        for child in self._store.adopted():
            self._try(self._see, child)

    def _try(self, step: Callable[..., None], *about: Any) -> None:
        """What goes wrong with one object keeps nothing from others, and is tried again."""
        try:
            step(*about)
        except Fenced as error:
            logger.info("a label is not followed: %s", error)
        except ClusterError as error:
            logger.warning("a label is not followed: %s", error.message)

    def _take_all(self, resource: Resource) -> None:
        for namespace in self._namespaces:
            for page in self._client.pages(resource, namespace, labels=f"{LABEL_ADOPT},!{LABEL_JOB}"):
                for body in page.items:
                    self._try(self._take, resource, body)

    def _take(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Make the ProfiledJob of an object with the label, or say on the object why there is none."""
        about = meta(body)
        value, name = str((about.get("labels") or {}).get(LABEL_ADOPT)), str(about["name"])
        if about.get("deletionTimestamp"):
            return
        owner = controller_reference(about)
        known = self._store.job(JobKey(str(about["namespace"]), name))
        ref, kind = None if known is None else known.job.spec.workload_ref, kind_at(resource)
        if kind is None or kind.adoption is None:
            text = f"a {resource.kind} can't be adopted, {adoptable_text()} can: take the label off, or wrap it"
            self._say(resource, body, Reason.WORKLOAD_NOT_ADOPTABLE, text)
        elif value not in CHANGES:
            self._say(resource, body, *_meaningless(value))
        elif owner:
            self._say(resource, body, Reason.WORKLOAD_CONTROLLED, controlled_text(f"{resource.kind} {name}", owner))
        elif PROFILED_JOB_NAME.fullmatch(name) is None:
            text = f"its name can't be a ProfiledJob's, which has at most {MAX_NAME} of a-z, 0-9 and '-'"
            self._say(resource, body, Reason.NAME_TAKEN, f"{text}: create one with spec.workloadRef")
        elif known is None:
            self._create(resource, body, CHANGES[value])
        elif ref is None or (ref.kind, ref.name) != (resource.kind, name):
            text = f"a ProfiledJob {name} is there and not this {resource.kind}'s: create one with spec.workloadRef"
            self._say(resource, body, Reason.NAME_TAKEN, text)

    def _create(self, resource: Resource, body: Mapping[str, Any], change: AdoptionChange) -> None:
        about = meta(body)
        identity = {"apiVersion": resource.api_version, "kind": resource.kind, "name": about["name"]}
        owner = {**identity, "uid": about["uid"], "controller": True}
        manifest = {
            "apiVersion": PROFILED_JOBS.api_version,
            "kind": PROFILED_JOBS.kind,
            "metadata": {"name": about["name"], "namespace": about["namespace"], "ownerReferences": [owner]},
            "spec": {"workloadRef": identity, **_wish(change)},
        }
        self._fence.leader()
        try:
            self._store.assume(PROFILED_JOBS, self._client.create(PROFILED_JOBS, manifest))
        except AlreadyExists:
            return  # the watch tells whose it is
        logger.info("made ProfiledJob %s of its label", about["name"], extra={"namespace": about["namespace"]})

    def _see(self, child: ChildFacts) -> None:
        """An object that is marked as a ProfiledJob's."""
        assert child.adopted is not None
        key = JobKey(child.namespace, child.job)
        stored = self._store.job(key)
        if stored is None or stored.job.uid != child.owner:
            self._release(child)
        elif child.adopted.asked is None and stored.controller == child.uid and not stored.job.deleting:
            self._fence.leader()
            with suppress(NotFound):
                self._client.delete(PROFILED_JOBS, key.name, key.namespace, uid=stored.job.uid)
            logger.info("deleted ProfiledJob %s with its label", key.name, extra={"namespace": key.namespace})
        elif stored.controller == child.uid and child.adopted.asked in CHANGES:
            self._follow(stored, CHANGES[child.adopted.asked])
        elif stored.controller == child.uid and child.adopted.asked is not None:
            about = {"name": child.name, "namespace": child.namespace, "uid": child.uid}
            self._say(child.kind.resource, {"metadata": about}, *_meaningless(child.adopted.asked))

    def _follow(self, stored: StoredJob, change: AdoptionChange) -> None:
        """The label has another value than when its ProfiledJob was made."""
        job = stored.job
        if job.invalid is not None or job.deleting or job.spec.only_watched is (change is AdoptionChange.RECOMMEND):
            return
        about = {"uid": job.uid, "resourceVersion": stored.resource_version}
        self._fence.leader()
        path = PROFILED_JOBS.path(job.key.namespace, job.key.name)
        body = {"metadata": about, "spec": _wish(change)}
        query = {"fieldManager": FIELD_MANAGER}
        answer = self._client.request("PATCH", path, query=query, body=body, content=MERGE_CONTENT)
        self._store.assume(PROFILED_JOBS, answer)

    def _release(self, child: ChildFacts) -> None:
        """Take the mark off an object whose ProfiledJob is gone."""
        resource = child.kind.resource
        with suppress(NotFound):  # the watch tells that it is gone
            body = self._client.get(resource, child.name, child.namespace)
            if meta(body)["uid"] == child.uid and (meta(body).get("labels") or {}).get(LABEL_JOB) == child.job:
                self._fence.leader()
                # What the operator has suspended nobody else would resume, and without its mark it is not seen.
                if is_held(body) and queue_of(body) is not None:
                    activate(self._client, child, True)
                patch = operations(body, let_go(child.kind, body))
                if patch:
                    body = self._client.patch(resource, child.name, child.namespace, patch)
                self._store.assume(resource, mark(self._client, resource, body, None, None))

    def _say(self, resource: Resource, body: Mapping[str, Any], reason: Reason, note: str) -> None:
        about = meta(body)
        regarding = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": str(about["namespace"]),
            "name": str(about["name"]),
            "uid": str(about["uid"]),
        }
        self._post(Event(regarding, reason.value, "Adopt", note, warning=True))


def _meaningless(value: str) -> tuple[Reason, str]:
    return Reason.ADOPT_LABEL_UNKNOWN, f"label {LABEL_ADOPT} is {value}: write {' or '.join(CHANGES)}, or take it off"


def _wish(change: AdoptionChange) -> dict[str, Any]:
    """What of the spec of a ProfiledJob follows its label."""
    mode = None if change is AdoptionChange.RECOMMEND else AdaptationMode.AUTO.value
    return {"adoption": {"change": change.value}, "adaptation": {"mode": mode}}
