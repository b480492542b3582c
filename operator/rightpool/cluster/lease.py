"""Leader election by a coordination.k8s.io Lease.

`held` guarantees that no other process can be leader now. A renewal proves this for the Lease's duration from the time
at which the request was *sent*, less a margin for clock drift. It is measured on a clock that continues while the
process is stopped or the machine sleeps. Another holder counts as alive for its duration from the time at which *this
process* saw its record change, so that clocks of two machines are never compared.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from rightpool.api.kubernetes import Resource
from rightpool.cluster.errors import ClusterError, Conflict, NotFound, Unreachable
from rightpool.cluster.resources import LEASES

# Share of the duration, for clock drift and the time between a check and the request that it allows.
MARGIN: Final = 0.2
ELIGIBLE_SECONDS: Final = 0.2  # between two checks whether this process is eligible; a check sends no request

logger = logging.getLogger(__name__)


def running_clock() -> float:
    """Seconds that include suspend. CLOCK_MONOTONIC stops there, so an expired Lease would seem held after a resume."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class LeaseApi(Protocol):
    """The part of ClusterClient that the elector uses."""

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> dict[str, Any]: ...
    def create(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]: ...
    def replace(self, resource: Resource, body: Mapping[str, Any]) -> dict[str, Any]: ...


class LeaseElector:
    """Holds or tries to take the Lease, in a thread of its own so that a long planning cycle does not delay a renewal.

    `eligible` says whether this process could work as leader. If not, it neither takes nor renews the Lease. It does
    not release a Lease that it holds either: the Lease expires, so that pending requests end before another one leads.
    """

    def __init__(
        self,
        api: LeaseApi,
        *,
        namespace: str,
        name: str,
        identity: str,
        duration: float = 15.0,
        eligible: Callable[[], bool] = lambda: True,
        on_change: Callable[[bool], None] | None = None,
        clock: Callable[[], float] = running_clock,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._duration = duration
        self._eligible = eligible
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
    def held(self) -> bool:
        """Whether this process is leader now."""
        return self._clock() < self._held_until

    def held_for(self, seconds: float) -> bool:
        """Whether this process is certainly leader for this long. Checked before a request that may take so long."""
        return self._clock() + seconds < self._held_until

    def start(self) -> None:
        """Start to take part in the election."""
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop, and release the Lease so that the next leader does not wait for its expiry."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        if self.held:
            self._held_until = 0.0
            self._report(False)
            self._release()

    def _run(self) -> None:
        while not self._stop.is_set():
            self.step()
            if self._eligible():
                self._stop.wait(self._duration / (5.0 if self.held or self.holder is None else 3.0))
            else:
                self._stop.wait(min(ELIGIBLE_SECONDS, self._duration / 5.0))

    def step(self) -> bool:
        """Try once to take or renew the Lease; whether this process is leader afterwards."""
        if not self._eligible():
            self._held_until = 0.0
            self._report(False)
            return False
        sent_at = self._clock()
        try:
            taken: bool | None = self._attempt()
        except Conflict:
            taken = False  # another process wrote between GET and PUT; the next step reads the result
        except ClusterError as error:
            if not isinstance(error, Unreachable):  # the log says that once, for all requests
                logger.warning("lease %s/%s: %s", self._namespace, self._name, error.message)
            taken = None  # unknown: the last renewal remains valid until it expires
        if taken:
            self._held_until = sent_at + self._duration * (1.0 - MARGIN)
        elif taken is False:
            self._held_until = 0.0
        self._report(self.held)
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

    def _report(self, leader: bool) -> None:
        if leader != self._was_leader:
            self._was_leader = leader
            logger.info("leader" if leader else "not leader", extra={"lease": self._name, "holder": self.holder})
            if self._on_change is not None:
                self._on_change(leader)
