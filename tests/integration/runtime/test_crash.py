"""Programs that fail and templates that can't be started: what a user sees of them, and how soon."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import EVENTS, PODS
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet, OperatorProcess
from tests.patience import eventually

pytestmark = pytest.mark.cluster

TRACE = (
    "Traceback (most recent call last):\n  File \"train.py\", line 1\nModuleNotFoundError: No module named 'torch'\n"
)
CONTAINER = {"name": "trainer", "image": "example.com/trainer:1"}


def events(fleet: Fleet, name: str) -> list[Body]:
    found = fleet.client.list_all(EVENTS, fleet.namespace)
    return [event for event in found if event["involvedObject"]["name"] == name]


def end_containers(fleet: Fleet, name: str, code: int, message: str) -> None:
    """What the kubelet reports of a program that ends."""

    def go() -> bool:
        for pod in fleet.pods(name):
            if pod["status"].get("phase") not in ("Pending", "Running"):
                continue
            names = [container["name"] for container in pod["spec"]["containers"]]
            over = {"exitCode": code, "reason": "Error", "message": message, "finishedAt": _now()}
            statuses = [
                {
                    "name": n,
                    "image": "x",
                    "imageID": "",
                    "ready": False,
                    "restartCount": 0,
                    "state": {"terminated": over},
                }
                for n in names
            ]
            pod["status"].update(phase="Failed", containerStatuses=statuses)
            path = PODS.path(fleet.namespace, pod["metadata"]["name"], "status")
            try:
                fleet.client.request("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod"})
            except ClusterError:
                return False
            return True
        return False

    eventually(go, "a pod to end")


def leads(start: Start, fleet: Fleet) -> OperatorProcess:
    """An operator that leads already."""
    operator = start()
    fleet.create("first", suspend=True)
    eventually(lambda: fleet.condition("first", "Placed"), "an operator leads")
    return operator


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def test_a_program_that_fails_is_visible_with_exit_code_and_traceback(start: Start, fleet: Fleet) -> None:
    operator = start()
    fleet.create("crash")
    eventually(lambda: fleet.running("crash", "crash-r1"))
    policies = {c["terminationMessagePolicy"] for pod in fleet.pods("crash") for c in pod["spec"]["containers"]}
    assert policies == {"FallbackToLogsOnError"}
    end_containers(fleet, "crash", 1, TRACE)
    placed: Body = operator.soon(
        lambda: (c := fleet.condition("crash", "Placed")).get("reason") == "CrashLoop" and c, "a user is told"
    )  # type: ignore[assignment]
    for part in ("exited with 1 (Error)", "failed once", "of 6 allowed", "No module named 'torch'"):
        assert part in placed["message"]
    (event,) = operator.soon(lambda: [e for e in events(fleet, "crash") if e["reason"] == "CrashLoop"], "an Event")
    assert event["type"] == "Warning"
    assert "No module named 'torch'" in event["message"]


def test_a_program_that_fails_in_the_save_before_it_is_suspended(start: Start, fleet: Fleet) -> None:
    start()
    fleet.create("full", checkpoint={"mode": "Signal", "path": "/ckpt", "timeout": "30m"})
    eventually(lambda: fleet.running("full", "full-r1"))
    fleet.edit("full", lambda spec: spec.update(suspend=True))
    eventually(lambda: "was asked to save" in fleet.condition("full", "Placed").get("message", ""), "a pause")
    end_containers(fleet, "full", 1, "OSError: [Errno 28] No space left on device")
    (event,) = eventually(lambda: [e for e in events(fleet, "full") if e["reason"] == "SaveFailed"], "told")
    assert event["type"] == "Warning"
    assert "No space left on device" in event["message"] and "stopped without it" in event["message"]
    eventually(lambda: fleet.condition("full", "Placed").get("reason") == "Suspended", "stopped")
    assert "the program failed after one was asked for" in fleet.condition("full", "Placed")["message"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"containers": [{"name": "trainer", "image": "x", "comand": ["python"]}]}, "comand"),
        ({"containers": [{"name": "trainer", "image": "x"}], "restartPolcy": "Never"}, "restartPolcy"),
        ({"containers": [{"name": "trainer", "image": "x", "resources": {"request": {"cpu": "1"}}}]}, "request"),
    ],
)
def test_a_typo_in_the_template_is_refused_by_name(
    start: Start, fleet: Fleet, change: dict[str, Any], field: str
) -> None:
    operator = leads(start, fleet)
    fleet.create("typo", template={"spec": change})
    refused: Body = operator.soon(
        lambda: (c := fleet.condition("typo", "Placed")).get("reason") == "InvalidTemplate" and c, "a refusal"
    )  # type: ignore[assignment]
    assert f'{field}"' in refused["message"]
    assert not fleet.pods("typo")


def test_a_refused_variable_is_named_and_pods_that_are_not_made_are_told(start: Start, fleet: Fleet) -> None:
    leads(start, fleet)
    both = {"name": "LR", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    fleet.create("absent", template={"spec": {"serviceAccountName": "nobody", "containers": [CONTAINER]}})
    fleet.create("both", template={"spec": {"containers": [{**CONTAINER, "env": [both]}]}})

    def says(name: str, reason: str, words: str) -> bool:
        placed = fleet.condition(name, "Placed")
        return placed.get("reason") == reason and words in placed["message"]

    eventually(lambda: says("both", "InvalidTemplate", "containers[0].env[LR].valueFrom"), "the variable by its name")
    eventually(lambda: says("absent", "PodsRefused", 'serviceaccount "nobody" not found'), "Kubernetes' words")
    assert not fleet.pods("absent")


def test_a_typo_is_told_while_no_pool_can_take_the_job(start: Start, fleet: Fleet) -> None:
    operator = leads(start, fleet)
    template = {"spec": {"containers": [{"name": "trainer", "image": "x", "comand": ["python"]}]}}
    fleet.create("waits", template=template, placement={"pools": {"allow": ["no-such-pool"]}})
    operator.soon(lambda: fleet.condition("waits", "Placed").get("reason") == "InvalidTemplate", "a refusal")


def test_an_edit_with_a_typo_does_not_end_what_runs(start: Start, fleet: Fleet) -> None:
    operator = start()
    fleet.create("runs")
    eventually(lambda: fleet.running("runs", "runs-r1"))
    (pod,) = fleet.pods("runs")

    def typo(spec: Body) -> None:
        spec["workload"]["job"]["template"]["spec"]["containers"][0]["comand"] = ["python"]

    fleet.edit("runs", typo)
    operator.soon(lambda: fleet.condition("runs", "Migrating").get("reason") == "InvalidTemplate", "a refusal")
    assert "comand" in fleet.condition("runs", "Migrating")["message"]
    assert fleet.running("runs", "runs-r1")
    assert [p["metadata"]["uid"] for p in fleet.pods("runs")] == [pod["metadata"]["uid"]]
    (event,) = operator.soon(lambda: [e for e in events(fleet, "runs") if e["reason"] == "InvalidTemplate"], "an Event")
    assert event["type"] == "Warning"
    fleet.edit("runs", lambda spec: spec["workload"]["job"]["template"]["spec"]["containers"][0].pop("comand"))
    eventually(lambda: fleet.condition("runs", "Migrating").get("reason") != "InvalidTemplate")
