"""What the job's user does, or the job itself, in the middle of a move: it wins, at whatever phase it comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from chaos.operators import Replica
from chaos.stream import Stream
from rightpool.cluster.errors import ClusterError, NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from tests.integration.faults.fleet import Body, Tenant
from tests.integration.faults.test_every_write import new_image
from tests.integration.runtime.harness import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("watchman")]

PHASES = ("Planned", "Checkpointing", "Draining", "Starting", "WarmingUp", "Verifying")
ACTIONS = ("edit", "suspend", "delete", "finish")


def act(tenant: Tenant, name: str, action: str) -> None:
    if action == "edit":
        tenant.edit(name, new_image)
    elif action == "suspend":
        tenant.edit(name, lambda spec: spec.update(suspend=True))
    elif action == "delete":
        tenant.client.delete(PROFILED_JOBS, name, tenant.namespace, propagation="Background")
    else:
        finish(tenant, name)


def finish(tenant: Tenant, name: str) -> None:
    """The job's pods succeed, as soon as there are any that run."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for pod in tenant.pods(name):
            if pod["status"].get("phase") != "Running":
                continue
            ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
            containers = [{**c, "ready": False, "state": ended} for c in pod["status"]["containerStatuses"]]
            status = {**pod["status"], "phase": "Succeeded", "containerStatuses": containers}
            path = PODS.path(tenant.namespace, pod["metadata"]["name"], "status")
            try:
                tenant.client._call("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod", "status": status})
            except ClusterError:
                continue
            return
        time.sleep(0.05)


class Director:
    """Watches every job's phase, and acts on each the moment it is in its own."""

    def __init__(self, tenant: Tenant, stream: Stream, parts: dict[str, tuple[str, str]]) -> None:
        self.acted: dict[str, str] = {}
        self._tenant = tenant
        self._stream = stream
        self._parts = parts
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            for event in self._stream.take():
                about = event.body["metadata"]
                if event.resource is not PROFILED_JOBS or about["namespace"] != self._tenant.namespace:
                    continue
                phase = ((event.body.get("status") or {}).get("migration") or {}).get("phase")
                wanted = self._parts.get(about["name"])
                if wanted is None or wanted[0] != phase or about["name"] in self.acted:
                    continue
                self.acted[about["name"]] = phase
                self._threads.append(threading.Thread(target=act, args=(self._tenant, about["name"], wanted[1])))
                self._threads[-1].start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(15)


@pytest.fixture
def stream(tenant: Tenant, kubeconfig: object) -> Iterator[Stream]:
    from pathlib import Path

    stream = Stream(Path(str(kubeconfig)))
    yield stream
    stream.stop()


def test_users_and_jobs_win_at_every_phase(operate: Callable[..., Replica], tenant: Tenant, stream: Stream) -> None:
    operate()
    parts = {f"{action}-{phase.lower()}": (phase, action) for phase, action in product(PHASES, ACTIONS)}
    director = Director(tenant, stream, parts)
    for name in parts:
        tenant.train(name)
    eventually(lambda: len(director.acted) == len(parts), 90, "every job came to its phase")
    director.stop()
    names = {action: [name for name, (_, what) in parts.items() if what == action] for action in ACTIONS}
    for name in names["delete"]:
        eventually(lambda name=name: gone(tenant, name), 30, f"{name} is gone")  # type: ignore[misc]
    for name in names["finish"]:
        eventually(lambda name=name: over(tenant, name), 40, f"{name} is over")  # type: ignore[misc]
    for name in names["suspend"]:
        eventually(lambda name=name: asleep(tenant, name), 30, f"{name} sleeps")  # type: ignore[misc]
        tenant.edit(name, lambda spec: spec.update(suspend=False))
    for name in names["suspend"] + names["edit"]:
        eventually(lambda name=name: tenant.settled(name), 60, f"{name} runs")  # type: ignore[misc]
        tenant.only_child(name)
    for name in names["edit"]:
        eventually(lambda name=name: image_of(tenant, name) == "example.com/trainer:2", 60, name)  # type: ignore[misc]


def gone(tenant: Tenant, name: str) -> bool:
    try:
        tenant.job(name)
    except NotFound:
        return not tenant.children(name) and not tenant.pods(name)
    return False


def over(tenant: Tenant, name: str) -> bool:
    """Ended; or, where its pods were being drained when it finished, placed anew."""
    completed = tenant.condition(name, "Completed").get("status") == "True"
    return completed and not tenant.revisions_alive(name) and not tenant.status(name).get("migration")


def asleep(tenant: Tenant, name: str) -> bool:
    return tenant.condition(name, "Placed").get("reason") == "Suspended" and not tenant.revisions_alive(name)


def image_of(tenant: Tenant, name: str) -> str:
    child = tenant.child(f"{name}-r{tenant.status(name)['placement']['revision']}")
    container: Body = {} if child is None else child["spec"]["template"]["spec"]["containers"][0]
    return str(container.get("image"))
