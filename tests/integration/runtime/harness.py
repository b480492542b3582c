"""An operator in a process of its own, and the little that tests ask of the cluster."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Conflict, NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from tests.patience import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[3]
Body = dict[str, Any]
T = TypeVar("T")
# Of half a second where nothing else is to be done. The API server or the kubelet may not run for a while, and the
# operator meanwhile does.
SOON_CYCLES = 100


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def use_image(spec: Body, tag: str) -> None:
    """A user's edit of what runs."""
    spec["workload"]["job"]["template"]["spec"]["containers"][0]["image"] = f"example.com/trainer:{tag}"


class OperatorProcess:
    """`rightpool operator`, watching one namespace, with a Lease of a few seconds."""

    def __init__(self, kubeconfig: Path, namespace: str, folder: Path, identity: str, **settings: str) -> None:
        self.identity = identity
        self.metrics_port = free_port()
        self.log = folder / f"{identity}.log"
        key = folder / "key"
        key.write_text("0123456789abcdef0123456789abcdef")
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "operator"),
            "RIGHTPOOL_WATCH_NAMESPACES": namespace,
            "RIGHTPOOL_LEASE_NAMESPACE": namespace,
            "RIGHTPOOL_LEASE_DURATION": "5",
            "RIGHTPOOL_INTERVAL": "0.5",
            "RIGHTPOOL_IDENTITY": identity,
            "RIGHTPOOL_TOKEN_KEY_FILE": str(key),
            "RIGHTPOOL_BIND_ADDRESS": "127.0.0.1",
            "RIGHTPOOL_METRICS_PORT": str(self.metrics_port),
            "RIGHTPOOL_LIVENESS_PORT": "0",
            "RIGHTPOOL_LOG_FORMAT": "text",
            **settings,
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rightpool.cli.main", "operator", "--kubeconfig", str(kubeconfig)],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def terminate(self) -> None:
        """Ask it to end, and wait for that."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        if self.process.poll() is None:
            self.thaw()
            self.kill()

    def logged(self, text: str) -> bool:
        return text in self.log.read_text()

    def _series(self, name: str) -> list[str]:
        """The lines of its metrics page that begin so."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=PATIENCE) as answer:
            return [line for line in answer.read().decode().splitlines() if line.startswith(name)]

    def exports(self, name: str) -> bool:
        """Whether its metrics page has a series of this metric."""
        return bool(self._series(name))

    def metric(self, name: str) -> float:
        """The sum over the series of a metric."""
        return sum(float(line.rpartition(" ")[2]) for line in self._series(name))

    @property
    def cycles(self) -> float:
        """How many cycles it has made as leader."""
        return self.metric('rightpool_operator_cycle_seconds_count{phase="step"}')

    def soon(self, check: Callable[[], T], what: str) -> T:
        """Wait for the first true result, and check that it did not take the operator many cycles. They are longer on a
        busier machine, as all else is."""
        before = self.cycles
        result = eventually(check, what)
        took = self.cycles - before
        assert took <= SOON_CYCLES, f"after {took:.0f} cycles: {what}"
        return result


class Fleet:
    """One namespace of the cluster under test."""

    def __init__(self, client: ClusterClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def create(self, name: str, **spec: Any) -> Body:
        container = {"name": "trainer", "image": "example.com/trainer:1"}
        template = spec.pop("template", {"spec": {"containers": [container]}})
        job = {"chipsPerReplica": 4, "replicas": 1, "template": template, **spec.pop("job", {})}
        full = {
            "workload": {"job": job},
            "elasticity": {"minChips": 4, "maxChips": 4},
            "placement": {"pools": {"allow": ["a10g"]}},
            "checkpoint": {"mode": "Signal", "timeout": "4s"},
            "profiling": {"interval": "1s", "window": "5s"},
            **spec,
        }
        return self.client.create(
            PROFILED_JOBS, {"metadata": {"name": name, "namespace": self.namespace}, "spec": full}
        )

    def edit(self, name: str, change: Callable[[Body], None]) -> None:
        """Edit as a user does, and try again after a conflict."""
        while True:
            body = self.client.get(PROFILED_JOBS, name, self.namespace)
            change(body["spec"])
            try:
                self.client.replace(PROFILED_JOBS, body)
                return
            except Conflict:
                continue

    def caught(self, name: str, *phases: str) -> int:
        """Edit what a job runs until the move that this brings is seen in one of these phases, or in any. On a machine
        that stands still at times a phase passes unseen: then it is edited once more. How often it was edited."""
        over = len(self.status(name).get("history") or ())
        for edits in itertools.count(1):
            self.edit(name, partial(use_image, tag=str(edits + 1)))
            seen = partial(self._seen, name, phases, over + edits)
            if eventually(seen, f"{name} moves", longest=0.1) == "in time":
                return edits
        raise AssertionError

    def _seen(self, name: str, phases: tuple[str, ...], entries: int) -> str:
        status = self.status(name)
        phase = (status.get("migration") or {}).get("phase")
        if phase is not None and (not phases or phase in phases):
            return "in time"
        return "too late" if len(status.get("history") or ()) >= entries else ""

    def job(self, name: str) -> Body:
        return self.client.get(PROFILED_JOBS, name, self.namespace)

    def status(self, name: str) -> Body:
        return self.job(name).get("status") or {}

    def condition(self, name: str, kind: str) -> Body:
        conditions = self.status(name).get("conditions") or ()
        return next((c for c in conditions if c["type"] == kind), {})

    def child(self, name: str) -> Body | None:
        try:
            return self.client.get(JOBS, name, self.namespace)
        except NotFound:
            return None

    def pods(self, name: str) -> list[Body]:
        return self.client.list_all(PODS, self.namespace, labels=f"{LABEL_JOB}={name}")

    def revisions_alive(self, name: str) -> set[str]:
        """Revisions with pods that may be working."""
        return {
            pod["metadata"]["labels"][LABEL_REVISION]
            for pod in self.pods(name)
            if pod["status"].get("phase") in ("Pending", "Running")
        }

    def running(self, name: str, child: str) -> bool:
        placed = self.condition(name, "Placed")
        return placed.get("status") == "True" and self.child(child) is not None


class SingleWriterWatch:
    """Looks all the time whether two Revisions of a job have pods at once."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.worst: set[str] = set()
        self.looks = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(fleet, name), daemon=True)
        self._thread.start()

    def _run(self, fleet: Fleet, name: str) -> None:
        while not self._stop.wait(0.05):
            try:
                alive = fleet.revisions_alive(name)
            except ClusterError:
                continue
            self.looks += 1
            if len(alive) > len(self.worst):
                self.worst = alive

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
