"""Programs that can't start on a real kubelet and container runtime: what a user sees of them, and how soon."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from devcluster.spec import TEST
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, PROFILED_JOBS
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet, OperatorProcess
from tests.integration.runtime.test_crash import events, leads
from tests.patience import eventually

pytestmark = pytest.mark.cluster

IMAGE = "docker.io/library/pause:dev"
"""The only image of the cluster. It has no shell and no Python."""
ABSENT = "registry.invalid/trainer:1"


@pytest.fixture
def pool(client: ClusterClient, kubeconfig: object) -> Iterator[str]:
    """The processors of the container node as chips."""
    if kubeconfig != TEST.kubeconfig or os.geteuid() != 0:
        pytest.skip("the container node is the embedded cluster's, and needs root")
    name = f"real-{uuid.uuid4().hex[:8]}"
    spec = {
        "accelerator": "CPU",
        "chipsPerNode": 2,
        "resourceName": "rightpool.dev/cpu-chip",
        "nodeSelector": {"kubernetes.io/hostname": "node-0"},
        "price": {"perChipHour": "0.05"},
    }
    client.create(ACCELERATOR_POOLS, {"metadata": {"name": name}, "spec": spec})
    yield name
    client.delete(ACCELERATOR_POOLS, name)


def run(fleet: Fleet, name: str, pool: str, image: str, restart: str, command: list[str]) -> None:
    container = {"name": "trainer", "image": image, "imagePullPolicy": "IfNotPresent", "command": command}
    fleet.create(
        name,
        template={"spec": {"restartPolicy": restart, "containers": [container]}},
        job={"chipsPerReplica": 1, "backoffLimit": 6},
        elasticity={"minChips": 1, "maxChips": 1},
        placement={"pools": {"allow": [pool]}},
        profiling={"mode": "Off"},
    )


def statuses(fleet: Fleet, name: str) -> list[Body]:
    """Of the program's containers, as the kubelet reports them."""
    return [
        status
        for pod in fleet.pods(name)
        for status in pod["status"].get("containerStatuses") or ()
        if status["name"] == "trainer"
    ]


def waits(fleet: Fleet, name: str, *reasons: str) -> bool:
    return any((each["state"].get("waiting") or {}).get("reason") in reasons for each in statuses(fleet, name))


def failed(fleet: Fleet, name: str) -> bool:
    return any("terminated" in {**each["state"], **each["lastState"]} for each in statuses(fleet, name))


def shown(operator: OperatorProcess, fleet: Fleet, name: str, reason: str, *words: str) -> None:
    """The condition and the Event say so, soon."""

    def is_so() -> bool:
        placed = fleet.condition(name, "Placed")
        return placed.get("reason") == reason and all(word in placed["message"] for word in words)

    operator.soon(is_so, f"Placed of {name} says {reason}: {words}")
    (event,) = operator.soon(lambda: [e for e in events(fleet, name) if e["reason"] == reason], f"Event {reason}")
    assert event["type"] == "Warning"


def test_a_command_that_is_not_there_and_an_image_that_is_not_there(start: Start, fleet: Fleet, pool: str) -> None:
    operator = leads(start, fleet)
    run(fleet, "once", pool, IMAGE, "Never", ["python", "train.py"])
    eventually(lambda: failed(fleet, "once"), "the kubelet can't start it")
    shown(operator, fleet, "once", "CrashLoop", "128 (StartError)", "executable file not found")

    run(fleet, "again", pool, IMAGE, "OnFailure", ["python", "train.py"])
    eventually(lambda: waits(fleet, "again", "CrashLoopBackOff", "RunContainerError"), "the kubelet backs off")
    shown(operator, fleet, "again", "CrashLoop", "executable file not found")

    fleet.client.delete(PROFILED_JOBS, "once", fleet.namespace)
    run(fleet, "absent", pool, ABSENT, "Never", ["python", "train.py"])
    eventually(lambda: waits(fleet, "absent", "ErrImagePull", "ImagePullBackOff"), "the image can't be pulled")
    shown(operator, fleet, "absent", "ContainerNotStarted", ABSENT)
