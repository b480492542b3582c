"""Leader election by a coordination.k8s.io Lease.

What counts is the one promise `held` makes: nobody else can be leader now. A renewal proves it from the moment at
which the request was *sent* for the Lease's duration, less a margin for clocks that run at different speeds; it is
measured on a clock that goes on while the process is stopped or the machine sleeps. Other holders are believed to be
alive for their duration from when *we* saw their record change, so that no two machines' clocks are ever compared.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from rightpool.cluster.errors import ClusterError, Conflict, NotFound
from rightpool.cluster.resources import LEASES, Resource

MARGIN: Final = 0.2  # share of the duration that is given away for drift and for the time a check takes to be acted on

logger = logging.getLogger(__name__)


def running_clock() -> float:
    """Seconds that go on in suspend. CLOCK_MONOTONIC stops there, and a leader would wake up believing in its Lease."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class LeaseApi(Protocol):
    """What the elector needs of the cluster."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any]: ...
    def create(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]: ...
    def replace(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]: ...


class LeaseElector:
    """Runs in a thread of its own, so that a long planning cycle never costs the Lease."""

    def __init__(
        self,
        api: LeaseApi,
        *,
        namespace: str,
        name: str,
        identity: str,
        duration: float = 15.0,
        on_change: Callable[[bool], None] | None = None,
        clock: Callable[[], float] = running_clock,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._duration = duration
        self._on_change = on_change
        self._clock = clock
        self._held_until = 0.0
        self._was_leader = False
        self._seen: tuple[str, str] | None = None  # holder and renewTime of another's record
        self._seen_at = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.transitions = 0
        self.holder: str | None = None

    @property
    def held_until(self) -> float:
        """On `clock`: until then nobody else can be leader. 0 where we are not."""
        return self._held_until

    @property
    def held(self) -> bool:
        """Whether we are leader now."""
        return self._clock() < self._held_until

    def held_for(self, seconds: float) -> bool:
        """Whether we are certain to be leader for so long: asked before a request that takes up to that time."""
        return self._clock() + seconds < self._held_until

    def start(self) -> None:
        """Take part in the election."""
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Leave, and give the Lease back so that the next leader need not wait for it to run out."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        if self.held:
            self._held_until = 0.0
            self._announce(False)
            self._release()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()
            self._stop.wait(self._duration / (5.0 if self.held or self.holder is None else 3.0))

    def step(self) -> bool:
        """One attempt to take or to renew the Lease; whether we are leader after it."""
        sent_at = self._clock()
        try:
            taken: bool | None = self._attempt()
        except Conflict:
            taken = False  # somebody wrote between our GET and PUT; the next step reads what
        except ClusterError as error:
            logger.warning("lease %s/%s: %s", self._namespace, self._name, error.message)
            taken = None  # unknown: what was proven before stays proven until it runs out
        if taken:
            self._held_until = sent_at + self._duration * (1.0 - MARGIN)
        elif taken is False:
            self._held_until = 0.0
        self._announce(self.held)
        return self.held

    def _attempt(self) -> bool:
        try:
            lease = self._api.get(LEASES, self._name, self._namespace)
        except NotFound:
            body = {
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": self._record({}, fresh=True),
            }
            self._accept(self._api.create(LEASES, body))
            return True
        spec: dict[str, Any] = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        mine = holder == self._identity
        if not mine and holder and self._alive(holder, spec):
            self.holder = holder
            return False
        lease["spec"] = self._record(spec, fresh=not mine)
        self._accept(self._api.replace(LEASES, lease))
        return True

    def _alive(self, holder: str, spec: Mapping[str, Any]) -> bool:
        record = (holder, str(spec.get("renewTime")))
        now = self._clock()
        if record != self._seen:
            self._seen, self._seen_at = record, now
        return now < self._seen_at + float(spec.get("leaseDurationSeconds") or self._duration)

    def _record(self, old: Mapping[str, Any], *, fresh: bool) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._duration)),
            "acquireTime": now if fresh else old.get("acquireTime") or now,
            "renewTime": now,
            "leaseTransitions": transitions + 1 if fresh and old else transitions,
        }

    def _accept(self, lease: Mapping[str, Any]) -> None:
        self.holder = self._identity
        self.transitions = int(lease["spec"].get("leaseTransitions") or 0)

    def _release(self) -> None:
        try:
            lease = self._api.get(LEASES, self._name, self._namespace)
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") != self._identity:
                return
            lease["spec"] = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
            self._api.replace(LEASES, lease)
        except ClusterError as error:
            logger.info("lease %s/%s is left to run out: %s", self._namespace, self._name, error.message)

    def _announce(self, leader: bool) -> None:
        if leader != self._was_leader:
            self._was_leader = leader
            logger.info("leader" if leader else "not leader", extra={"lease": self._name, "holder": self.holder})
            if self._on_change is not None:
                self._on_change(leader)
