"""What a fault acts on: the cluster, the operators, the jobs, the random draws, and the list of pending repairs."""

from __future__ import annotations

import heapq
import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB
from tests.chaos.components import Components
from tests.chaos.environment import Environment
from tests.chaos.invariants import Checker
from tests.chaos.jobs import Slot, object_of, spec_of
from tests.chaos.leadership import Leadership
from tests.chaos.operators import ProcessPool, Replica
from tests.chaos.prometheus_proxy import PrometheusProxy

Body = dict[str, Any]
Repair = Callable[[], None]
T = TypeVar("T")
REPLICAS: Final = ("a", "b")
_OF_JOB: Final = "batch.kubernetes.io/job-name"
SETTLE_SECONDS: Final = 8.0


class NotApplicable(Exception):
    """The fault has no target at the moment; another one is drawn."""


@dataclass(slots=True)
class Fault:
    """One kind of fault.

    do: injects it. Its repair is scheduled before: what the API server did not answer it may have done.
    """

    name: str
    group: str
    weight: float
    do: Callable[[FaultContext], None]
    offline: bool = False  # can be injected while the API server is unavailable


@dataclass(slots=True)
class FaultContext:
    """The state of one campaign. One thread injects faults and runs the repairs that are due."""

    environment: Environment
    components: Components
    process_pool: ProcessPool
    prometheus: PrometheusProxy
    leadership: Leadership
    checker: Checker
    slots: list[Slot]
    rng: random.Random
    replicas: dict[str, Replica] = field(default_factory=dict)
    reserved: set[str] = field(default_factory=set)  # what a fault has exclusively until it is repaired
    _repairs: list[tuple[float, int, Repair]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _starts: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def client(self) -> Any:
        return self.environment.client

    # --- operators ---------------------------------------------------------------------------------------------------

    def start_replica(self, name: str, crash: str | None = None, **settings: str) -> Replica:
        """Start a new process for a replica, under a new identity, as a new pod has one. settings: more variables."""
        variables = {"RIGHTPOOL_LEASE_NAMESPACE": "rightpool-system", **settings}
        if self.rng.random() < 0.5:
            variables["RIGHTPOOL_PROMETHEUS_URL"] = self.prometheus.url
        self.replicas[name] = self.process_pool.start(f"{name}-{next(self._starts)}", crash=crash, variables=variables)
        return self.replicas[name]

    def replace_ended(self) -> int:
        """Replace ended processes, as a Deployment does. Returns how many were replaced."""
        ended = [name for name in REPLICAS if name not in self.replicas or not self.replicas[name].alive]
        for name in ended:
            self.start_replica(name)
        return len(ended)

    @property
    def can_act(self) -> bool:
        """Whether an operator leads undisturbed and has written a status since it does, or has had the time to.

        On a busy machine a first cycle takes long; where all are cut short, as long as faults come fast, only what a
        leader has written tells that it acts.
        """
        if self.components.broken:
            return False
        now = time.monotonic()
        return any(
            self._leads_since(replica, now) < max(self.checker.written_at, now - SETTLE_SECONDS)
            for replica in self.replicas.values()
        )

    def _leads_since(self, replica: Replica, now: float) -> float:
        """Since when a process leads undisturbed, in monotonic seconds; inf if it does not."""
        leads = self.leadership.seconds(replica.identity, now)
        return max(replica.since, now - leads) if replica.can_act and leads > 0.0 else math.inf

    # --- the control plane -------------------------------------------------------------------------------------------

    @property
    def offline(self) -> bool:
        """Whether the API server is unavailable: requests fail, and only after a timeout."""
        return not self.components.broken.isdisjoint(("kube-apiserver", "etcd"))

    # --- jobs --------------------------------------------------------------------------------------------------------

    def pick(self, *, real: bool | None = None, adopted: bool | None = False) -> Slot:
        """A random slot. None: whether it is so or not."""
        asked = ((real, "real"), (adopted, "adopted"))
        wanted = {name: value for value, name in asked if value is not None}
        return self.rng.choice([s for s in self.slots if all(getattr(s, name) is v for name, v in wanted.items())])

    def create(self, slot: Slot) -> None:
        """Create the job of a slot, unless it exists, and the object that it adopts."""
        if slot.adopted:
            self._create_object(slot)
        body = {"metadata": {"name": slot.name, "namespace": slot.namespace}, "spec": spec_of(slot, self.rng)}
        try:
            self.client.create(PROFILED_JOBS, body)
        except AlreadyExists:
            pass

    def _create_object(self, slot: Slot) -> None:
        about = {"name": slot.name, "namespace": slot.namespace}
        try:
            made = self.client.create(JOBS, {"metadata": about, "spec": object_of(slot, self.rng)})
        except AlreadyExists:
            return
        self.checker.objects.wrote(made)

    def object(self, slot: Slot) -> Body:
        """What a user has made himself, which the slot's job adopts."""
        return self._read(JOBS, slot)

    def job(self, slot: Slot) -> Body:
        """The ProfiledJob of a slot."""
        return self._read(PROFILED_JOBS, slot)

    def _read(self, resource: Resource, slot: Slot) -> Body:
        try:
            body: Body = self.client.get(resource, slot.name, slot.namespace)
        except NotFound as error:
            raise NotApplicable(f"{slot} has no {resource.kind}") from error
        return body

    def edit(self, slot: Slot, change: Callable[[Body], None]) -> None:
        """Edit a spec as a user does."""
        for _ in range(20):
            body = self.job(slot)
            change(body)
            try:
                self.client.replace(PROFILED_JOBS, body)
            except Conflict:
                continue
            return
        raise NotApplicable(f"{slot} changes too often to be edited")

    def pods(self, slot: Slot) -> list[Body]:
        """The pods of a job that have not ended."""
        selector = f"{_OF_JOB if slot.adopted else LABEL_JOB}={slot.name}"
        pods: list[Body] = self.client.list_all(PODS, slot.namespace, labels=selector)
        return [pod for pod in pods if pod["status"].get("phase") in ("Pending", "Running")]

    def children(self, slot: Slot) -> list[Body]:
        """The child Jobs of a ProfiledJob."""
        children: list[Body] = self.client.list_all(JOBS, slot.namespace, labels=f"{LABEL_JOB}={slot.name}")
        return children

    def choose(self, things: list[T]) -> T:
        """A random one of them. Raises NotApplicable if there is none."""
        if not things:
            raise NotApplicable("there is nothing to choose from")
        return self.rng.choice(things)

    # --- repairs -----------------------------------------------------------------------------------------------------

    def reserve(self, what: str) -> None:
        """Keep other faults from breaking this until it is repaired."""
        if what in self.reserved:
            raise NotApplicable(f"{what} is broken already")
        self.reserved.add(what)

    def repair_later(self, seconds: float, repair: Repair) -> None:
        """Schedule a repair."""
        heapq.heappush(self._repairs, (time.monotonic() + seconds, next(self._order), repair))

    def repair(self, *, everything: bool = False) -> None:
        """Run the repairs that are due. One that fails is tried again."""
        while self._repairs and (everything or self._repairs[0][0] <= time.monotonic()):
            if self.offline:
                if not everything:
                    return
                time.sleep(0.1)
                continue
            _, _, repair = heapq.heappop(self._repairs)
            try:
                repair()
            except (NotApplicable, NotFound):
                pass
            except ClusterError:
                self.repair_later(1.0, repair)
                time.sleep(0.1 if everything else 0.0)
