"""The adopter: marks the object that a ProfiledJob names, so that the watches see it.

A label and an annotation of its metadata say which ProfiledJob it is looked at for. Its spec is never written here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.adoption import WorkloadRef
from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.api.wording import brief
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.contract import ANNOTATION_ADOPTED_BY, FIELD_MANAGER, LABEL_JOB
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.moves.commands import Adopt
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.act.refusals import Refusals
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import adoptable_text, adopted_workload, kind_named
from rightpool.workloads.metadata import controller_reference
from rightpool.workloads.template import InvalidTemplate

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 15.0  # between two looks for an object that can't be adopted
_LONGEST: Final = 47  # characters of a kind and a name in a message
_NO_REVISION: Final = 0  # a refusal is of the object, whatever Revision it is


class _Refused(Exception):
    """The object is not adopted."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Adopter:
    """Used as the executor is."""

    def __init__(self, client: ClusterClient, fence: Fence, store: Store, refusals: Refusals) -> None:
        self._client = client
        self._fence = fence
        self._store = store
        self._refusals = refusals

    def needed(self, job: Job) -> bool:
        """Whether the object was not found yet, or is there no more, and is to be looked for now."""
        found = self._store.adopted_by(job.key, job.uid)
        return (found is None or found.deleting) and not self._refusals.recent(job, _NO_REVISION, LOOK_SECONDS)

    def adopt(self, job: Job, command: Adopt) -> bool:
        """Look at the object, and mark it unless something speaks against that."""
        ref = job.spec.workload_ref
        assert ref is not None
        try:
            kind, body = self._found(job, ref)
        except _Refused as refused:
            self._refusals.add(job, _NO_REVISION, refused.reason, refused.message)
            return False
        self._fence.persisted(job, command)
        self._store.assume(kind.resource, mark(self._client, kind.resource, body, job.key.name, job.uid))
        self._refusals.discard(job.uid)
        logger.info("adopted %s", ref, extra={"job": str(job.key)})
        return True

    def _found(self, job: Job, ref: WorkloadRef) -> tuple[Kind[Any], Mapping[str, Any]]:
        """The object that may be adopted."""
        kind = kind_named(ref.api_version, ref.kind)
        if kind is None:
            kinds = f"{brief(ref.kind, _LONGEST)} of {brief(ref.api_version, _LONGEST)}"
            message = f"workloadRef: {kinds} can't be adopted, {adoptable_text()} can"
            raise _Refused(Reason.WORKLOAD_NOT_ADOPTABLE, message)
        if kind.resource not in self._store.watched:
            name = f"{kind.resource.plural}.{kind.resource.group}"
            raise _Refused(Reason.KIND_NOT_INSTALLED, f"{name} is not installed; {ref} is looked for once it is")
        try:
            body = self._client.get(kind.resource, ref.name, job.key.namespace)
        except NotFound:
            message = (
                f"{ref} is not in namespace {brief(job.key.namespace, _LONGEST)}: create it, or delete this ProfiledJob"
            )
            raise _Refused(Reason.WORKLOAD_NOT_FOUND, message) from None
        self._check(job, ref, kind, body)
        return kind, body

    def _check(self, job: Job, ref: WorkloadRef, kind: Kind[Any], body: Mapping[str, Any]) -> None:
        about = meta(body)
        if about.get("deletionTimestamp"):
            raise _Refused(Reason.WORKLOAD_NOT_FOUND, f"{ref} is being deleted: delete this ProfiledJob, too")
        owner = controller_reference(about)
        if owner:
            raise _Refused(Reason.WORKLOAD_CONTROLLED, controlled_text(str(ref), owner))
        other = _other_adopter(self._store, body, job.key)
        if other is not None:
            message = f"{ref} is that of ProfiledJob {other} already: delete either of the two"
            raise _Refused(Reason.ADOPTED_BY_ANOTHER, message)
        try:
            adopted_workload(kind, body)
        except InvalidTemplate as error:
            raise _Refused(Reason.WORKLOAD_NOT_ADOPTABLE, f"{ref}: {error.message}") from None


def _other_adopter(store: Store, body: Mapping[str, Any], key: JobKey) -> str | None:
    """The name of another ProfiledJob that the object is marked as that of, where that is there and names it."""
    about = meta(body)
    name = (about.get("labels") or {}).get(LABEL_JOB)
    if not name or name == key.name:
        return None
    stored = store.job(JobKey(key.namespace, name))
    marked = (about.get("annotations") or {}).get(ANNOTATION_ADOPTED_BY)
    return name if stored is not None and stored.job.uid == marked else None


def controlled_text(name: str, owner: Mapping[str, Any]) -> str:
    """That the object is another one's."""
    maker = brief(f"{owner.get('kind')} {owner.get('name')}", _LONGEST)
    return f"{brief(name, _LONGEST)} is made by {maker}, which would undo changes of it: adopt that instead"


def mark(
    client: ClusterClient, resource: Resource, body: Mapping[str, Any], job: str | None, uid: str | None
) -> Mapping[str, Any]:
    """Write into the object's metadata which ProfiledJob it is looked at for; None: for none any more. Raises Conflict
    where the object has changed."""
    about = meta(body)
    patch = {
        "metadata": {
            "uid": about["uid"],
            "resourceVersion": about["resourceVersion"],
            "labels": {LABEL_JOB: job},
            "annotations": {ANNOTATION_ADOPTED_BY: uid},
        }
    }
    path = resource.path(about["namespace"], about["name"])
    return client.request("PATCH", path, query={"fieldManager": FIELD_MANAGER}, body=patch, content=MERGE_CONTENT)
