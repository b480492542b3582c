"""A site: a namespace with its own operators and a checker of its invariants."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from tests.chaos.invariants import Checker
from tests.chaos.operators import ProcessPool, Replica
from tests.chaos.stream import Stream, StreamEvent
from tests.integration.faults.fleet import Tenant
from tests.patience import PATIENCE, pauses

# Seconds for which a state that must be cleaned up may last, while an operator can act. One that is killed at every
# write never can, and on a busy machine its many starts take minutes.
CLEANUP_SECONDS = 120.0
START_SECONDS = 20.0  # until an operator acts
# While this process itself did not run, it does not know whether others did.
LONGEST_TICK = 0.5


class NamespaceWatch:
    """A background thread that passes the events of each namespace to its checker."""

    def __init__(self, kubeconfig: Path, *others: Resource) -> None:
        """`others`: kinds of children that not every cluster has."""
        self._checkers: dict[str, tuple[Checker, Callable[[], bool]]] = {}
        self._listeners: dict[str, Callable[[StreamEvent], None]] = {}
        self._stream = Stream(kubeconfig, *others)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def watch(self, namespace: str, checker: Checker, can_act: Callable[[], bool]) -> None:
        """can_act: whether an operator has run for so long that it acts."""
        self._checkers = {**self._checkers, namespace: (checker, can_act)}

    def watches(self, namespace: str) -> bool:
        return namespace in self._checkers

    def listen(self, namespace: str, listener: Callable[[StreamEvent], None]) -> None:
        """Pass the events of a namespace to a listener as well."""
        self._listeners = {**self._listeners, namespace: listener}

    def forget(self, namespace: str) -> None:
        self._checkers = {name: checked for name, checked in self._checkers.items() if name != namespace}
        self._listeners = {name: ear for name, ear in self._listeners.items() if name != namespace}

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.05):
            for event in self._stream.take():
                namespace = event.body["metadata"].get("namespace", "")
                if namespace in self._checkers:
                    self._checkers[namespace][0].observe(event)
                if namespace in self._listeners:
                    self._listeners[namespace](event)
            now = time.monotonic()
            for checker, can_act in self._checkers.values():
                checker.tick(min(now - last, LONGEST_TICK) if can_act() else 0.0)
            last = now

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        self._stream.stop()


class Site:
    """One namespace with its own operators."""

    def __init__(
        self,
        client: ClusterClient,
        namespace: str,
        process_pool: ProcessPool,
        namespace_watch: NamespaceWatch,
        folder: Path,
    ) -> None:
        self.tenant = Tenant(client, namespace)
        self.namespace = namespace
        self.folder = folder
        self.checker = Checker(limit=CLEANUP_SECONDS)
        self.namespace_watch = namespace_watch
        self._process_pool = process_pool
        self._started: list[Replica] = []
        namespace_watch.watch(namespace, self.checker, self._operator_can_act)

    def operate(self, identity: str = "a", crash: str | None = None, **settings: str) -> Replica:
        """Start an operator that watches this namespace only. crash: see `tests.chaos.fork_server`."""
        variables = {
            "RIGHTPOOL_WATCH_NAMESPACES": self.namespace,
            "RIGHTPOOL_LEASE_NAMESPACE": self.namespace,
            "RIGHTPOOL_LEASE_DURATION": "10",
            **settings,
        }
        replica = self._process_pool.start(f"{self.namespace}-{identity}", crash=crash, variables=variables)
        self._started.append(replica)
        return replica

    def _operator_can_act(self) -> bool:
        before = time.monotonic() - START_SECONDS
        return any(replica.can_act and replica.since < before for replica in self._started)

    def ended(self, replica: Replica, seconds: float) -> bool:
        """Whether it ended within that time."""
        return self._process_pool.wait(replica, seconds)

    def unwatch(self) -> None:
        """Stop checking: from now on the test forges objects of the operator."""
        self.namespace_watch.forget(self.namespace)
        self.checker = Checker()

    def assert_no_violations(self) -> None:
        """The checker runs and has found no violation so far. Of a test that was skipped it has seen nothing."""
        if not self.namespace_watch.watches(self.namespace):
            return
        assert self.namespace_watch.running and (self.checker.events > 0 or not self._started)
        violations = [str(violation) for violation in self.checker.violations]
        assert violations == [], violations

    def close(self) -> None:
        """Kill all operators of this site."""
        for replica in self._started:
            replica.thaw()
            replica.kill()
        for replica in self._started:
            assert self.ended(replica, PATIENCE)
        self.namespace_watch.forget(self.namespace)


class CrashingOperator:
    """An operator that is killed by SIGKILL once right before and once right after every write, and is restarted."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.crashes = 0
        self._memory = site.folder / f"{site.namespace}.points"
        self._replica = self._begin()

    def _begin(self) -> Replica:
        # With the same identity, so that it need not wait for its own Lease to expire.
        return self.site.operate(crash=f"points:{self._memory}")

    def until(self, check: Callable[[], object], what: str) -> None:
        """Restart the operator after each crash until the check holds."""
        for pause in pauses(2 * PATIENCE):
            if check():
                return
            if self.site.ended(self._replica, pause):
                assert self._replica.exit_code == -9, self._replica.log.read_text()[-2000:]
                self.crashes += 1
                self._replica = self._begin()
        raise AssertionError(f"never came: {what}; crashed at {self.points[-3:]}")

    def missed(self, *steps: str) -> list[str]:
        """The writes before which it did not crash.

        Only `before` counts: a write in progress when another thread crashes the process is never seen to end.
        """
        return [step for step in steps if not any(point.startswith(f"before {step}") for point in self.points)]

    @property
    def points(self) -> list[str]:
        return self._memory.read_text().splitlines() if self._memory.exists() else []
