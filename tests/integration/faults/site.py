"""A site: a namespace, the operators that look after it alone, and what must never happen in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from chaos.invariants import Checker
from chaos.operators import Nursery, Replica
from chaos.stream import Seen, Stream
from rightpool.cluster.client import ClusterClient
from tests.integration.faults.fleet import Tenant

# Of a state that is to be cleaned up. Operators here die all the time, and the machine may be busy.
PATIENCE = 120.0


class Watchman:
    """Shows each checker what happens in its namespace, in the background."""

    def __init__(self, kubeconfig: Path) -> None:
        self._checkers: dict[str, Checker] = {}
        self._ears: dict[str, Callable[[Seen], None]] = {}
        self._stream = Stream(kubeconfig)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, namespace: str, checker: Checker) -> None:
        self._checkers = {**self._checkers, namespace: checker}

    def watches(self, namespace: str) -> bool:
        return namespace in self._checkers

    def listen(self, namespace: str, ear: Callable[[Seen], None]) -> None:
        """Let somebody hear what happens there, too."""
        self._ears = {**self._ears, namespace: ear}

    def forget(self, namespace: str) -> None:
        self._checkers = {name: checker for name, checker in self._checkers.items() if name != namespace}
        self._ears = {name: ear for name, ear in self._ears.items() if name != namespace}

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.05):
            for event in self._stream.take():
                namespace = event.body["metadata"].get("namespace", "")
                if namespace in self._checkers:
                    self._checkers[namespace].see(event)
                if namespace in self._ears:
                    self._ears[namespace](event)
            now = time.monotonic()
            for checker in self._checkers.values():
                checker.tick(now - last)
            last = now

    @property
    def awake(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(60)
        self._stream.stop()


class Site:
    """One namespace, with operators of its own."""

    def __init__(
        self, client: ClusterClient, namespace: str, nursery: Nursery, watchman: Watchman, folder: Path
    ) -> None:
        self.tenant = Tenant(client, namespace)
        self.namespace = namespace
        self.folder = folder
        self.checker = Checker(limit=PATIENCE)
        self.watchman = watchman
        self._nursery = nursery
        self._started: list[Replica] = []
        watchman.watch(namespace, self.checker)

    def operate(self, identity: str = "a", die: str | None = None, **settings: str) -> Replica:
        """A new operator, which watches this namespace alone. die: as in `chaos.nursery`."""
        environment = {
            "RIGHTPOOL_WATCH_NAMESPACES": self.namespace,
            "RIGHTPOOL_LEASE_NAMESPACE": self.namespace,
            "RIGHTPOOL_LEASE_DURATION": "10",
            **settings,
        }
        replica = self._nursery.start(f"{self.namespace}-{identity}", die=die, environment=environment)
        self._started.append(replica)
        return replica

    def ended(self, replica: Replica, seconds: float) -> bool:
        """Whether it ended within that time."""
        return self._nursery.wait(replica, seconds)

    def unwatch(self) -> None:
        """From now on somebody forges here what the checker takes for the operator's."""
        self.watchman.forget(self.namespace)
        self.checker = Checker()

    def sound(self) -> None:
        """Nothing that must never happen has happened so far, and somebody looked on."""
        if not self.watchman.watches(self.namespace):
            return
        assert self.watchman.awake and self.checker.events > 0
        assert [str(violation) for violation in self.checker.violations] == []

    def close(self) -> None:
        """No operator of this site lives on."""
        for replica in self._started:
            replica.thaw()
            replica.kill()
        for replica in self._started:
            assert self.ended(replica, 60)
        self.watchman.forget(self.namespace)


class Lives:
    """An operator that dies by SIGKILL right before and right after every single write, once each, and is started
    again whenever it has."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.deaths = 0
        self._memory = site.folder / f"{site.namespace}.points"
        self._replica = self._begin()

    def _begin(self) -> Replica:
        # Under the same name, so that its own Lease need not run out: what is tested here is the next step.
        return self.site.operate(die=f"points:{self._memory}")

    def until(self, check: Callable[[], object], what: str, seconds: float = 500.0) -> None:
        """Go on living until this is so."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}; died at {self.points[-3:]}"
            if self.site.ended(self._replica, 0.2):
                assert self._replica.exit_code == -9, self._replica.log.read_text()[-2000:]
                self.deaths += 1
                self._replica = self._begin()

    def missed(self, *steps: str) -> list[str]:
        """Those of these writes before which it did not die. (A write that is under way at a death in another thread
        has happened, and is never seen to be over: so what counts is `before`.)"""
        return [step for step in steps if not any(point.startswith(f"before {step}") for point in self.points)]

    @property
    def points(self) -> list[str]:
        return self._memory.read_text().splitlines() if self._memory.exists() else []
