"""The Service of a child's pods: created before they start, and never that of an earlier child."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rightpool.api.conditions import Reason
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Forbidden, Invalid, NotFound
from rightpool.cluster.resources import SERVICES
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import EnsureRevision
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.creation import create_or_get, name_taken_text
from rightpool.runtime.act.deletions import Deletions
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.refusals import Refusals
from rightpool.runtime.observe.facts import ChildFacts, controlled_by, controller_of, meta

logger = logging.getLogger(__name__)


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
        """Whether the child may lack the Service of its pods. A running child was started with it."""
        if not child.state.suspended or child.uid in self._with_service:
            return False
        return self._children.hosts(job, command.ref, child) is not None

    def forget(self, uid: str) -> None:
        """Forget a child that is ended."""
        self._with_service.discard(uid)

    def ensure(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        """Create the child's Service; whether it exists afterwards or is not needed.

        The Service is owned by the child and deleted with it, so it does no harm if another process leads by now.
        Holding the Lease is therefore a sufficient check.
        """
        if not self.lacking(job, command, child) or child.deleting:
            return True
        manifest = self._children.service(job, command.ref, child)
        if manifest is not None:
            self._fence.leader()
            try:
                service = create_or_get(self._client, SERVICES, manifest)
            except (Invalid, Forbidden) as error:
                self._refusals.add(job, command.ref.revision, Reason.INVALID_TEMPLATE, error.message)
                return False
            if controlled_by(meta(service), child.kind.resource, child.name):
                self._end_leftover(job, service, child)
            elif controller_of(meta(service)) != child.uid:
                taken = name_taken_text(SERVICES, str(meta(service)["name"]))
                self._refusals.add(job, command.ref.revision, Reason.NAME_TAKEN, taken)
                return False
        self._refusals.discard(job.uid)
        self._with_service.add(child.uid)
        return True

    def _end_leftover(self, job: Job, service: Mapping[str, Any], child: ChildFacts) -> None:
        """Delete the Service of an earlier child of this name that the garbage collector has not deleted yet.

        Names are unique, so while this child exists another owner of that name can only be an earlier one. If the
        Service is the child's own, nothing is done.
        """
        metadata = meta(service)
        if controller_of(metadata) == child.uid:
            return
        try:
            current = self._client.get(child.kind.resource, child.name, child.namespace)
        except NotFound as error:
            raise Fenced(f"{child.name} is gone") from error
        if meta(current).get("uid") != child.uid:
            raise Fenced(f"{child.name} was recreated")
        if self._deletions.may_delete(str(metadata["uid"])):
            self._fence.leader()
            self._deletions.delete(SERVICES, service)
            logger.info("ended Service %s of an earlier child", metadata["name"], extra={"job": str(job.key)})
        raise Fenced(f"Service {metadata['name']} of an earlier {child.name} is still there")
