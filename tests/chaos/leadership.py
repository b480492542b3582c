"""Which operator holds the Lease, and for how long by now, as the API server tells it.

On a busy machine an operator takes long to become leader, and loses the Lease again. In that time it can't act.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from devcluster.api import Api
from devcluster.watch import Watch
from rightpool.cluster.resources import LEASES
from tests.chaos.operators import LEASE_SECONDS

WATCH_SECONDS: Final = 15
RETRY_SECONDS: Final = 0.2

Body = Mapping[str, Any]


class Leadership:
    """Thread-safe. `now` is the monotonic time at which a state of the Lease arrived."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renewal = ("", "")
        self._since = 0.0
        self._renewed = float("-inf")
        self._watch: Watch[Body] | None = None

    def follow(self, kubeconfig: Path, name: str, namespace: str) -> None:
        """Observe each state of this Lease from now on."""
        self._watch = Watch(
            Api(kubeconfig),
            LEASES.path(namespace),
            reduce=lambda body: body,
            replaced=self._replaced,
            changed=lambda lease, exists: self.observe(lease if exists else {}, time.monotonic()),
            seconds=WATCH_SECONDS,
            backoff=(RETRY_SECONDS,),
            fieldSelector=f"metadata.name={name}",
        )
        self._watch.start()

    def stop(self) -> None:
        """The watch ends with its present connection."""
        if self._watch is not None:
            self._watch.stop()

    def observe(self, lease: Body, now: float) -> None:
        """One state of the Lease, {} if there is none. A state that is known already is no renewal."""
        spec = lease.get("spec") or {}
        renewal = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime")))
        with self._lock:
            if renewal == self._renewal:
                return
            if renewal[0] != self._renewal[0] or now - self._renewed > LEASE_SECONDS:
                self._since = now
            self._renewal, self._renewed = renewal, now

    def seconds(self, identity: str, now: float) -> float:
        """For how long this operator has held the Lease without a gap; 0 if it does not hold it."""
        with self._lock:
            holds = self._renewal[0] == identity and now - self._renewed <= LEASE_SECONDS
            return now - self._since if holds else 0.0

    def _replaced(self, leases: list[Body]) -> None:
        self.observe(leases[0] if leases else {}, time.monotonic())
