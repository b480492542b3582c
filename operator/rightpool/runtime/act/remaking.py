"""Objects that are deleted and made anew under their name, where their kind takes a change in no other way.

What the object was is in the status of its ProfiledJob before it is deleted, and a finalizer keeps the ProfiledJob
until it is there again. It is made stopped, as it was stopped before, and is resumed as any other.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rightpool.api.choices import AdoptionChange
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import AlreadyExists, Forbidden
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_ADOPTED_BY, FIELD_MANAGER, FINALIZER
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import ChangeObject, FreeJob
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.facts import ChildFacts, meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.in_place import is_held, manifest_of, remade

logger = logging.getLogger(__name__)


class Remaking:
    """Thread-safe where commands of one job are carried out in one thread at a time."""

    def __init__(self, client: ClusterClient, fence: Fence, store: Store) -> None:
        self._client = client
        self._fence = fence
        self._store = store
        self._manifests: dict[str, str] = {}  # by uid of the object; empty: another one is there

    def manifest(self, job: Job) -> str | None:
        """See Observed.object_manifest."""
        child = self._store.adopted_by(job.key, job.uid) if self._manifests else None
        if child is not None and not child.held:
            self._manifests.pop(child.uid, None)
        return None if child is None else self._manifests.get(child.uid)

    def allowed(self, job: Job, fresh: StoredJob) -> bool:
        """Whether its user lets the object be made anew, and it can be. fresh: the job as it is stored."""
        able, adoption = job.able, fresh.job.spec.adoption
        consents = adoption is not None and adoption.change is AdoptionChange.RECREATE
        return consents and able is not None and able.anew and not (fresh.job.deleting or fresh.controller)

    def begin(
        self, job: Job, child: ChildFacts, body: Mapping[str, Any], after: Mapping[str, Any], fresh: StoredJob
    ) -> bool:
        """Delete the object, once the stored status says what it was. after: as it is to be. Raises Invalid and
        Forbidden where the API server would not take that."""
        kind, about, known = child.kind, meta(body), fresh.job.state.adopted
        if not is_held(body) or not kind.observe(body).suspended:
            raise Fenced(f"{child.name} is not stopped")
        with suppress(AlreadyExists):
            self._client.create(kind.resource, json.loads(manifest_of(kind, after)), dry_run=True, strict=True)
        text = manifest_of(kind, body)
        if known is None or known.remade != text:
            self._manifests[child.uid] = text
            self._store.wake()
            return False
        if not fresh.job.guarded:
            self._finalize(fresh, there=True)
        self._fence.leader()
        version = str(about["resourceVersion"])
        self._client.delete(kind.resource, child.name, child.namespace, uid=child.uid, resource_version=version)
        logger.info("deleted %s, to make it anew", child.name, extra={"job": str(job.key)})
        return True

    def make(
        self, job: Job, command: ChangeObject, child: ChildFacts, pools: Mapping[str, Pool], *, changed: bool
    ) -> bool:
        """Make the object that is gone. changed: as the Revision that is asked for; else as it was. Raises Unable,
        InvalidTemplate, Invalid and Forbidden."""
        fresh, ref, kind = self._fence.persisted(job, command), command.ref, child.kind
        known = fresh.job.state.adopted
        if known is None or known.remade is None:
            return False  # its user has deleted it
        body = json.loads(known.remade)
        body["metadata"]["namespace"] = job.key.namespace  # whatever a status says: nothing is made in another one
        if changed and ref is not None:
            body = remade(kind, body, ref, pools.get(ref.placement.pool))
        try:
            created = self._client.create(kind.resource, body, strict=True)
        except AlreadyExists:
            return False  # by another process, or by its user: the next look tells
        except Forbidden as error:
            if "is being terminated" not in error.message:
                raise
            self._finalize(fresh, there=False)  # nothing can be made in its namespace any more
            return True
        self._store.assume(kind.resource, created)
        self._manifests.pop(child.uid, None)
        logger.info("made %s anew", child.name, extra={"job": str(job.key)})
        return True

    def give_up(self, job: Job, child: ChildFacts, body: Mapping[str, Any]) -> bool:
        """Another object has the name. Where its user has made it, that holds."""
        if (meta(body).get("annotations") or {}).get(ANNOTATION_ADOPTED_BY) != job.uid:
            self._manifests[child.uid] = ""
            self._store.wake()
        raise Fenced(f"{child.name} was made anew")

    def free(self, job: Job, command: FreeJob) -> bool:
        """See FreeJob."""
        self._finalize(self._fence.persisted(job, command), there=False)
        return True

    def _finalize(self, fresh: StoredJob, *, there: bool) -> None:
        """Have exactly this version of the ProfiledJob with the finalizer, or without it."""
        key = fresh.job.key
        body = self._client.get(PROFILED_JOBS, key.name, key.namespace)
        others = [name for name in meta(body).get("finalizers") or () if name != FINALIZER]
        about = {
            "uid": fresh.job.uid,
            "resourceVersion": fresh.resource_version,
            "finalizers": [*others, FINALIZER] if there else others,
        }
        path, query = PROFILED_JOBS.path(key.namespace, key.name), {"fieldManager": FIELD_MANAGER}
        answer = self._client.request("PATCH", path, query=query, body={"metadata": about}, content=MERGE_CONTENT)
        self._store.assume(PROFILED_JOBS, answer)
