"""What a fault works on: the cluster, the operators, the jobs, the dice, and a list of what is to be mended when."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from chaos.ground import Ground
from chaos.invariants import Checker
from chaos.jobs import Slot, spec_of
from chaos.operators import Nursery, Replica
from chaos.telemetry import Telemetry
from devcluster.processes import Identity, Supervisor
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB

Body = dict[str, Any]
Mend = Callable[[], None]
T = TypeVar("T")
REPLICAS: Final = ("a", "b")
SETTLE_SECONDS: Final = 8.0


class Pointless(Exception):
    """There is nothing to do this fault to at the moment; another one is drawn."""


@dataclass(slots=True)
class Fault:
    """One kind of fault. do: carries it out, and gives back how it is mended, and after how many seconds."""

    name: str
    group: str
    weight: float
    do: Callable[[Arena], tuple[float, Mend] | None]
    offline: bool = False  # can be done while the API server is away


@dataclass(slots=True)
class Arena:
    """One campaign's world. Faults are carried out by one thread; mending waits for nobody."""

    ground: Ground
    nursery: Nursery
    telemetry: Telemetry
    checker: Checker
    slots: list[Slot]
    chance: random.Random
    replicas: dict[str, Replica] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)  # parts of the control plane that are away
    taken: set[str] = field(default_factory=set)  # what a fault holds until it is mended
    over: threading.Event = field(default_factory=threading.Event)
    _mends: list[tuple[float, int, str, Mend]] = field(default_factory=list)
    _background: list[threading.Thread] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _born: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def client(self) -> Any:
        return self.ground.client

    # --- operators ---------------------------------------------------------------------------------------------------

    def raise_replica(self, name: str, die: str | None = None) -> Replica:
        """A new process in a replica's place, under a name of its own as a new pod has one."""
        environment = {"RIGHTPOOL_LEASE_NAMESPACE": "rightpool-system"}
        if self.chance.random() < 0.5:
            environment["RIGHTPOOL_PROMETHEUS_URL"] = self.telemetry.url
        self.replicas[name] = self.nursery.start(f"{name}-{next(self._born)}", die=die, environment=environment)
        return self.replicas[name]

    def tend(self) -> int:
        """Replace what has ended, as a Deployment does; how many that were."""
        ended = [name for name in REPLICAS if name not in self.replicas or not self.replicas[name].alive]
        for name in ended:
            self.raise_replica(name)
        return len(ended)

    @property
    def able(self) -> bool:
        """Whether there is anybody who could act: left in peace for as long as it takes to start and to lead."""
        before = time.monotonic() - SETTLE_SECONDS
        return not self.broken and any(r.able and r.since < before for r in self.replicas.values())

    # --- the control plane -------------------------------------------------------------------------------------------

    @property
    def offline(self) -> bool:
        """Whether the API server is away: nothing can be asked of it, and asking takes time."""
        return not self.broken.isdisjoint(("kube-apiserver", "etcd"))

    def process(self, component: str) -> Identity:
        """A component of this campaign's own cluster."""
        record = Supervisor(self.ground.spec.state).record(component)
        if record is None or not record.identity.alive():
            raise Pointless(f"{component} does not run")
        return record.identity

    # --- jobs --------------------------------------------------------------------------------------------------------

    def pick(self, *, real: bool | None = None) -> Slot:
        """One of the jobs' places."""
        return self.chance.choice([slot for slot in self.slots if real is None or slot.real is real])

    def create(self, slot: Slot) -> None:
        """A job in its place; nothing where there is one."""
        body = {"metadata": {"name": slot.name, "namespace": slot.namespace}, "spec": spec_of(slot, self.chance)}
        try:
            self.client.create(PROFILED_JOBS, body)
        except AlreadyExists:
            pass

    def job(self, slot: Slot) -> Body:
        """The ProfiledJob of a place."""
        try:
            body: Body = self.client.get(PROFILED_JOBS, slot.name, slot.namespace)
        except NotFound as error:
            raise Pointless(f"{slot} is not there") from error
        return body

    def edit(self, slot: Slot, change: Callable[[Body], None]) -> None:
        """A user's edit of a spec."""
        for _ in range(20):
            body = self.job(slot)
            change(body)
            try:
                self.client.replace(PROFILED_JOBS, body)
            except Conflict:
                continue
            return
        raise Pointless(f"{slot} is written all the time")

    def pods(self, slot: Slot) -> list[Body]:
        """The living pods of a job."""
        selector = f"{LABEL_JOB}={slot.name}"
        pods: list[Body] = self.client.list_all(PODS, slot.namespace, labels=selector)
        return [pod for pod in pods if pod["status"].get("phase") in ("Pending", "Running")]

    def children(self, slot: Slot) -> list[Body]:
        """The Jobs of a job."""
        children: list[Body] = self.client.list_all(JOBS, slot.namespace, labels=f"{LABEL_JOB}={slot.name}")
        return children

    def choose(self, things: list[T]) -> T:
        """One of them; Pointless where there is none."""
        if not things:
            raise Pointless("there is none")
        return self.chance.choice(things)

    # --- mending -----------------------------------------------------------------------------------------------------

    def hold(self, what: str) -> None:
        """Nobody else breaks this until it is mended."""
        if what in self.taken:
            raise Pointless(f"{what} is broken already")
        self.taken.add(what)

    def mend_later(self, name: str, seconds: float, mend: Mend) -> None:
        """Mend in so many seconds."""
        heapq.heappush(self._mends, (time.monotonic() + seconds, next(self._order), name, mend))

    def mend(self, *, everything: bool = False) -> None:
        """Mend what is due. What can't be mended yet is tried again."""
        while self._mends and (everything or self._mends[0][0] <= time.monotonic()):
            if self.offline:
                if not everything:
                    return
                time.sleep(0.1)
                continue
            _, _, name, mend = heapq.heappop(self._mends)
            try:
                mend()
            except (Pointless, NotFound):
                pass
            except ClusterError:
                self.mend_later(name, 1.0, mend)
                time.sleep(0.1 if everything else 0.0)

    def in_background(self, action: Callable[[], None]) -> None:
        """What takes its time, such as a component that comes up, must not hold up the next fault."""
        self._background = [thread for thread in self._background if thread.is_alive()]
        self._background.append(threading.Thread(target=action, daemon=True))
        self._background[-1].start()

    def close(self) -> None:
        """Whatever was stopped goes on."""
        self.over.set()
        for thread in self._background:
            thread.join(60)
