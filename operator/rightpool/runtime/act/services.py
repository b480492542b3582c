"""Services: of a child's pods, and of a server's requests. Created before pods start, and never an earlier owner's."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Forbidden, Invalid, NotFound
from rightpool.cluster.resources import PROFILED_JOBS, SERVICES
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import EnsureRevision
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.creation import create_or_get, name_taken_text
from rightpool.runtime.act.deletions import Deletions
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.refusals import Refusals
from rightpool.runtime.observe.facts import ChildFacts, controlled_by, controller_of, meta

logger = logging.getLogger(__name__)


class _ServiceOwner(NamedTuple):
    """What a Service is deleted with."""

    resource: Resource
    name: str
    uid: str


class ChildServices:
    """Thread-safe where those of one job are used in one thread at a time."""

    def __init__(
        self, client: ClusterClient, fence: Fence, children: Children, refusals: Refusals, deletions: Deletions
    ) -> None:
        self._client = client
        self._fence = fence
        self._children = children
        self._refusals = refusals
        self._deletions = deletions
        self._with_service: set[str] = set()  # uids of children that have their Service

    def lacking(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        """Whether a Service may be missing: that of its pods, with which a running child was started, or that at which
        requests come in."""
        return child.uid not in self._with_service and bool(self._wanted(job, command, child))

    def forget(self, uid: str) -> None:
        """Forget a child that is ended."""
        self._with_service.discard(uid)

    def ensure(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        """Create what the child lacks; whether it exists afterwards or is not needed.

        A Service is deleted with what owns it, so it does no harm if another process leads by now. Holding the Lease is
        therefore a sufficient check.
        """
        if not self.lacking(job, command, child) or child.deleting:
            return True
        for manifest, owner in self._wanted(job, command, child):
            self._fence.leader()
            try:
                service = create_or_get(self._client, SERVICES, manifest)
            except (Invalid, Forbidden) as error:
                self._refusals.add(job, command.ref.revision, Reason.INVALID_TEMPLATE, error.message)
                return False
            if controlled_by(meta(service), owner.resource, owner.name):
                self._end_leftover(job, service, owner)
            elif controller_of(meta(service)) != owner.uid:
                taken = name_taken_text(SERVICES, str(meta(service)["name"]))
                self._refusals.add(job, command.ref.revision, Reason.NAME_TAKEN, taken)
                return False
        self._refusals.discard(job.uid)
        self._with_service.add(child.uid)
        return True

    def _wanted(
        self, job: Job, command: EnsureRevision, child: ChildFacts
    ) -> list[tuple[Mapping[str, Any], _ServiceOwner]]:
        found: list[tuple[Mapping[str, Any], _ServiceOwner]] = []
        own = self._children.service(job, command.ref, child) if child.state.suspended else None
        if own is not None:
            found.append((own, _ServiceOwner(child.kind.resource, child.name, child.uid)))
        front = self._children.front(job)
        if front is not None:
            found.append((front, _ServiceOwner(PROFILED_JOBS, job.key.name, job.uid)))
        return found

    def _end_leftover(self, job: Job, service: Mapping[str, Any], owner: _ServiceOwner) -> None:
        """Delete the Service of an earlier owner of this name that the garbage collector has not deleted yet.

        Names are unique, so while this one exists another owner of that name can only be an earlier one. If the Service
        is this one's own, nothing is done.
        """
        metadata = meta(service)
        if controller_of(metadata) == owner.uid:
            return
        try:
            current = self._client.get(owner.resource, owner.name, job.key.namespace)
        except NotFound as error:
            raise Fenced(f"{owner.name} is gone") from error
        if meta(current).get("uid") != owner.uid:
            raise Fenced(f"{owner.name} was recreated")
        if self._deletions.may_delete(str(metadata["uid"])):
            self._fence.leader()
            self._deletions.delete(SERVICES, service)
            logger.info("ended Service %s of an earlier owner", metadata["name"], extra={"job": str(job.key)})
        raise Fenced(f"Service {metadata['name']} of an earlier {owner.name} is still there")
