"""Companions: objects that a Revision's child refers to, such as the runtime of a TrainJob. Each child has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightpool.api.revision import Revision
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, Forbidden, Invalid, NotFound
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.creation import name_taken_text
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.facts import ChildFacts, controlled_by, controller_of, meta
from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import kind_of
from rightpool.workloads.refused_fields import by_name
from rightpool.workloads.template import InvalidTemplate

Body = Mapping[str, Any]


class Companions:
    """Thread-safe where those of one job are used in one thread at a time."""

    def __init__(self, client: ClusterClient, fence: Fence, children: Children) -> None:
        self._client = client
        self._fence = fence
        self._children = children

    def original(self, job: Job) -> Body | None:
        """The object that the companion is made of, as it is now; None where the job's kind has no companion. Raises
        InvalidTemplate where it is not there."""
        workload = job.spec.workload
        companion = kind_of(workload).companion
        if companion is None:
            return None
        resource, name = companion.named(workload.chosen)
        try:
            return self._client.get(resource, name, job.key.namespace if resource.namespaced else None)
        except NotFound:
            raise InvalidTemplate(f"{resource.kind} {name} is not there: create it, or name another") from None

    def create(self, job: Job, ref: Revision, pool: Pool, original: Body | None) -> None:
        """Create the companion of a child that is about to be created. It belongs to the ProfiledJob until it is given
        to the child. Raises InvalidTemplate."""
        kind, manifest = kind_of(job.spec.workload), self._children.companion(job, ref, pool, original)
        if kind.companion is None or manifest is None:
            return
        resource, about = kind.companion.resource, manifest["metadata"]
        try:
            try:
                self._client.create(resource, manifest, strict=True)
            except AlreadyExists:
                stored = meta(self._client.get(resource, about["name"], about["namespace"]))
                if controlled_by(stored, kind.resource, about["name"]):
                    raise Fenced(f"{resource.kind} {about['name']} of an earlier child is still there") from None
                if controller_of(stored) != job.uid:
                    raise InvalidTemplate(name_taken_text(resource, about["name"])) from None
                # Made before the child was refused, which was edited since.
                version = {"uid": stored["uid"], "resourceVersion": stored["resourceVersion"]}
                self._client.replace(resource, {**manifest, "metadata": {**about, **version}})
        except (Invalid, Forbidden) as error:
            raise InvalidTemplate(by_name(error.message, manifest)) from None

    def wait_for(self, kind: Kind[Any], child: Body, refusal: str) -> None:
        """Raises Fenced where a webhook refuses a child only because it does not know its companion yet, which is
        there."""
        name = child["metadata"]["name"]
        if kind.companion is not None and f'"{name}" not found' in refusal:
            raise Fenced(f"a webhook does not know {kind.companion.resource.kind} {name} yet")

    def give(self, job: Job, child: ChildFacts) -> None:
        """Give the companion to its child, with which it is deleted then."""
        companion = child.kind.companion
        if companion is None:
            return
        body = self._client.get(companion.resource, child.name, child.namespace)
        if controller_of(meta(body)) == job.uid:
            self._fence.leader()
            owned = {**meta(body), "ownerReferences": [dict(child.reference)]}
            self._client.replace(companion.resource, {**body, "metadata": owned})
