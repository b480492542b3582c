"""Services: of a child's pods, and of a server's requests. Created before pods start, and never an earlier owner's.

Those of requests are made anew where somebody has deleted them: once a minute those of all servers are listed. As
often weights of HTTPRoutes are looked at, which their users may have applied anew.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, Invalid, NotFound
from rightpool.cluster.resources import PROFILED_JOBS, SERVICES
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.moves.commands import DirectTraffic, EnsureRevision, directed
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.creation import create_or_get, name_taken_text
from rightpool.runtime.act.deletions import Deletions
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.refusals import Refusals
from rightpool.runtime.act.routes import Routes
from rightpool.runtime.observe.facts import ChildFacts, controlled_by, controller_of, meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.front import FRONTS
from rightpool.workloads.metadata import controller_reference

LOOK_SECONDS: Final = 60.0
"""Between two looks whether Services of requests are still there."""

logger = logging.getLogger(__name__)


class _ServiceOwner(NamedTuple):
    """What a Service is deleted with."""

    resource: Resource
    name: str
    uid: str


class _Front(NamedTuple):
    """A Service at which requests come in."""

    job: JobKey
    name: str


class ChildServices:
    """Thread-safe where those of one job are used in one thread at a time."""

    def __init__(
        self,
        client: ClusterClient,
        fence: Fence,
        store: Store,
        children: Children,
        refusals: Refusals,
        deletions: Deletions,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._clock = clock
        self._client = client
        self._fence = fence
        self._children = children
        self._refusals = refusals
        self._deletions = deletions
        self._with_service: set[str] = set()  # uids of children that have their Service
        self._fronts: dict[str, tuple[_Front, ...]] = {}  # by the same, of servers
        self._look_at = -math.inf
        self._looking: Future[set[_Front]] | None = None
        self._directed: dict[str, DirectTraffic] = {}  # by uid of the job, where its Services send requests
        self._routed: dict[str, JobKey] = {}  # by the same, those with an HTTPRoute
        self.routes = Routes(client, fence)

    def look(self) -> None:
        """A new cycle: see to it that Services of requests that somebody has deleted are made anew."""
        if self._looking is not None and self._looking.done():
            looked, self._looking = self._looking, None
            try:
                gone = looked.result()
            except ClusterError as error:
                logger.warning("Services can't be listed: %s", error.message)
                gone = set()
            for uid, fronts in list(self._fronts.items()):
                for front in gone.intersection(fronts):
                    logger.warning("Service %s is gone, and is made anew", front.name, extra={"job": str(front.job)})
                    self.forget(uid)
                    self._look_again(front.job)
        if (self._fronts or self._routed) and self._looking is None and self._clock() >= self._look_at:
            self._look_at = self._clock() + LOOK_SECONDS
            self._looking = self._client.submit(self._gone, {one for fronts in self._fronts.values() for one in fronts})
            for uid, job in list(self._routed.items()):
                self._directed.pop(uid, None)
                self._look_again(job)

    def _look_again(self, job: JobKey) -> None:
        self._store.tell(job)
        self._store.wake()

    def _gone(self, fronts: set[_Front]) -> set[_Front]:
        """Those that are not there."""
        there: set[tuple[str, str]] = set()
        for namespace in {front.job.namespace for front in fronts}:
            listed = self._client.list_all(SERVICES, namespace, labels=FRONTS)
            there |= {(namespace, str(meta(body)["name"])) for body in listed}
        return {front for front in fronts if (front.job.namespace, front.name) not in there}

    def lacking(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        """Whether a Service may be missing: that of its pods, with which a running child was started, or that at which
        requests come in."""
        server, fronts = job.spec.workload.server, self._fronts.get(child.uid, ())
        routed = server is not None and server.traffic.http_route is not None and len(fronts) < 2
        return (child.uid not in self._with_service or routed) and bool(self._wanted(job, command, child))

    def forget(self, uid: str) -> None:
        """Forget a child that is ended, or a job that is gone."""
        self._with_service.discard(uid)
        self._fronts.pop(uid, None)
        self._directed.pop(uid, None)
        self._routed.pop(uid, None)
        self.routes.forget(uid)

    def ensure(self, job: Job, command: EnsureRevision, child: ChildFacts) -> bool:
        """Create what the child lacks; whether it exists afterwards or is not needed.

        A Service is deleted with what owns it, so it does no harm if another process leads by now. Holding the Lease is
        therefore a sufficient check.
        """
        if not self.lacking(job, command, child) or child.deleting:
            return True
        fronts: list[_Front] = []
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
                self._refusals.add(job, command.ref.revision, Reason.NAME_TAKEN, _taken_text(service, owner))
                return False
            if owner.resource is PROFILED_JOBS:
                fronts.append(_Front(job.key, str(meta(service)["name"])))
        if fronts:
            self._fronts[child.uid] = tuple(fronts)
        self._refusals.discard(job.uid)
        self._with_service.add(child.uid)
        return True

    def directs(self, job: Job, command: DirectTraffic) -> bool:
        """Whether requests go where the command says, as far as this process knows."""
        return self._directed.get(job.uid) == command

    def spares(self, job: Job, revision: int) -> bool:
        """Whether it is certain that requests do not go to this Revision."""
        command = self._directed.get(job.uid)
        return command is not None and revision not in command.numbers

    def direct(self, job: Job, command: DirectTraffic) -> bool:
        """Have requests go where the command says; whether anything was left to do.

        First where each Service sends them, then how many an HTTPRoute sends to each: killed in between, all of them
        come to Revisions that are there. Weights are written where both Services are this job's.
        """
        manifests = self._children.fronts(job, command)
        if not manifests or self.directs(job, command):
            return False
        answers = [self._select(job, command, manifest) for manifest in manifests]
        done = True in answers
        if command.beside is not None and None not in answers:
            done |= self.routes.direct(job, command, str(manifests[0]["metadata"]["name"]))
            self._routed[job.uid] = job.key
        self._directed[job.uid] = command
        return done

    def _select(self, job: Job, command: DirectTraffic, manifest: Mapping[str, Any]) -> bool | None:
        """Have a Service send requests to its pods; whether that was left to do. None of one that is not there, or is
        somebody else's: it sends none of ours anywhere."""
        name, selector = str(manifest["metadata"]["name"]), manifest["spec"]["selector"]
        try:
            service = self._client.get(SERVICES, name, job.key.namespace)
        except NotFound:
            return None
        if controller_of(meta(service)) != job.uid:
            return None
        if service["spec"]["selector"] == selector:
            return False
        self._fence.persisted(job, command)
        about = {"name": name, "namespace": job.key.namespace, "uid": meta(service)["uid"]}
        self._client.apply(SERVICES, {"metadata": about, "spec": {"selector": selector}})
        logger.info("%s sends requests to %s", name, selector, extra={"job": str(job.key)})
        return True

    def _wanted(
        self, job: Job, command: EnsureRevision, child: ChildFacts
    ) -> list[tuple[Mapping[str, Any], _ServiceOwner]]:
        found: list[tuple[Mapping[str, Any], _ServiceOwner]] = []
        own = self._children.service(job, command.ref, child) if child.state.suspended else None
        if own is not None:
            found.append((own, _ServiceOwner(child.kind.resource, child.name, child.uid)))
        owner = _ServiceOwner(PROFILED_JOBS, job.key.name, job.uid)
        return [*found, *((front, owner) for front in self._children.fronts(job, directed(job)))]

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


def _taken_text(service: Mapping[str, Any], owner: _ServiceOwner) -> str:
    """That a Service of this name is somebody else's."""
    about = meta(service)
    other = controller_reference(about)
    if owner.resource is not PROFILED_JOBS or other.get("kind") != PROFILED_JOBS.kind:
        return name_taken_text(SERVICES, str(about["name"]))
    return (
        f"Service {about['name']} is that of ProfiledJob {other.get('name')}: create this one anew with another "
        "workload.server.traffic.service"
    )
