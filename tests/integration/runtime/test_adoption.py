"""A Job that somebody else has made is looked at, and left as it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import EVENTS, PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_ADOPTED_BY, LABEL_ADOPT, LABEL_JOB
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.patience import eventually

pytestmark = pytest.mark.cluster

A10G = {"simulation.rightpool.dev/pool": "a10g"}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
PLAY = {"simulation.rightpool.dev/workload": "resnet50"}


def make_job(fleet: Fleet, name: str, chips: int = 4, pods: int = 1, **about: Any) -> Body:
    """As its user makes it, with a place of his own choice."""
    resources = {"limits": {"nvidia.com/gpu": str(chips)}} if chips else {}
    container = {"name": "trainer", "image": "example.com/trainer:1", "resources": resources}
    pod = {"nodeSelector": A10G, "tolerations": [TOLERATION], "restartPolicy": "Never", "containers": [container]}
    template = {"metadata": {"annotations": PLAY}, "spec": pod}
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "template": template}
    metadata = {"name": name, "namespace": fleet.namespace, **about}
    return fleet.client.create(JOBS, {"metadata": metadata, "spec": spec})


def label(fleet: Fleet, name: str, value: str | None) -> None:
    patch = {"metadata": {"labels": {LABEL_ADOPT: value}}}
    fleet.client.request("PATCH", JOBS.path(fleet.namespace, name), body=patch, content=MERGE_CONTENT)


def refer(fleet: Fleet, name: str, to: str, kind: str = "Job", api: str = "batch/v1") -> None:
    reference = {"apiVersion": api, "kind": kind, "name": to}
    profiling = {"interval": "1s", "window": "5s"}
    body = {
        "metadata": {"name": name, "namespace": fleet.namespace},
        "spec": {"workloadRef": reference, "profiling": profiling},
    }
    fleet.client.create(PROFILED_JOBS, body)


def is_there(fleet: Fleet, name: str) -> bool:
    try:
        return bool(fleet.job(name))
    except NotFound:
        return False


def job(fleet: Fleet, name: str) -> Body:
    return fleet.client.get(JOBS, name, fleet.namespace)


def reason(fleet: Fleet, name: str) -> str:
    return str(fleet.condition(name, "Placed").get("reason"))


def test_a_label_has_a_job_looked_at_and_its_end_is_the_end(start: Start, fleet: Fleet) -> None:
    operator = start()
    made = make_job(fleet, "train", pods=2)
    label(fleet, "train", "recommend")
    eventually(lambda: is_there(fleet, "train") and reason(fleet, "train") == "Running", "it is found where it runs")
    (owner,) = fleet.job("train")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "train", made["metadata"]["uid"])
    eventually(lambda: "perHour" in fleet.status("train")["cost"], "what it costs is known")
    status = fleet.status("train")
    assert status["placement"] == status["placement"] | {"pool": "a10g", "chips": 8, "replicas": 2, "revision": 1}
    assert status["cost"]["chips"] == 8
    assert status["adopted"]["uid"] == made["metadata"]["uid"]
    # Nothing is written again, and nothing of its spec ever was.
    seen = copy.deepcopy(job(fleet, "train"))
    before = operator.cycles
    eventually(lambda: operator.cycles >= before + 10)
    assert job(fleet, "train") == seen
    assert seen["spec"] == made["spec"] and seen["metadata"]["generation"] == made["metadata"]["generation"]
    pods = fleet.client.list_all(PODS, fleet.namespace)
    assert len(pods) == 2 and all(LABEL_JOB not in pod["metadata"]["labels"] for pod in pods)

    fleet.client.delete(JOBS, "train", fleet.namespace, propagation="Background")
    eventually(lambda: not is_there(fleet, "train"), "it goes with its object")


def test_without_its_label_it_is_not_looked_at_and_runs_on(start: Start, fleet: Fleet) -> None:
    start()
    made = make_job(fleet, "train")
    label(fleet, "train", "recommend")
    eventually(lambda: is_there(fleet, "train") and reason(fleet, "train") == "Running")
    label(fleet, "train", None)
    eventually(lambda: not is_there(fleet, "train"), "its ProfiledJob is deleted")
    eventually(lambda: LABEL_JOB not in job(fleet, "train")["metadata"].get("labels", {}), "and the mark is taken off")
    left = job(fleet, "train")
    assert ANNOTATION_ADOPTED_BY not in left["metadata"].get("annotations", {})
    assert left["spec"] == made["spec"] and left["status"]["active"] == 1


def test_a_profiledjob_names_a_job_and_is_deleted_alone(start: Start, fleet: Fleet) -> None:
    start()
    make_job(fleet, "train")
    refer(fleet, "mine", "train")
    eventually(lambda: reason(fleet, "mine") == "Running")
    refer(fleet, "yours", "train")
    eventually(lambda: reason(fleet, "yours") == "AdoptedByAnother")
    assert "ProfiledJob mine" in fleet.condition("yours", "Placed")["message"]
    fleet.client.delete(PROFILED_JOBS, "mine", fleet.namespace)
    eventually(lambda: reason(fleet, "yours") == "Running", "another one may have it then")
    assert job(fleet, "train")["status"]["active"] == 1


def test_an_object_that_is_made_anew_is_followed(start: Start, fleet: Fleet) -> None:
    start()
    refer(fleet, "mine", "train")
    eventually(lambda: reason(fleet, "mine") == "WorkloadNotFound")
    make_job(fleet, "train")
    eventually(lambda: reason(fleet, "mine") == "Running", "it is looked for again")
    fleet.client.delete(JOBS, "train", fleet.namespace, propagation="Foreground")
    eventually(lambda: reason(fleet, "mine") == "WorkloadNotFound")
    eventually(lambda: "perHour" not in fleet.status("mine")["cost"], "the meter stops")
    uid = make_job(fleet, "train")["metadata"]["uid"]
    eventually(lambda: reason(fleet, "mine") == "Running")
    eventually(lambda: fleet.status("mine")["adopted"]["uid"] == uid and "perHour" in fleet.status("mine")["cost"])


def test_what_can_not_be_adopted_is_told_with_the_remedy(start: Start, fleet: Fleet) -> None:
    start()
    make_job(fleet, "idle", chips=0)
    refer(fleet, "without-chips", "idle")
    refer(fleet, "deployment", "web", "Deployment", "apps/v1")
    uid = make_job(fleet, "nightly")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "nightly", "uid": uid, "controller": True}
    make_job(fleet, "owned", ownerReferences=[owner])
    refer(fleet, "of-another", "owned")
    expected = {
        "without-chips": ("WorkloadNotAdoptable", "no container asks for chips"),
        "deployment": ("WorkloadNotAdoptable", "Deployment of apps/v1 can't be adopted"),
        "of-another": ("WorkloadControlled", "Job nightly"),
    }
    for name, (why, words) in expected.items():
        eventually(lambda name=name, why=why: reason(fleet, name) == why, name)  # type: ignore[misc]
        assert words in fleet.condition(name, "Placed")["message"]

    make_job(fleet, "typo")
    label(fleet, "typo", "yes")

    def event_reasons() -> list[str]:
        events = fleet.client.list_all(EVENTS, fleet.namespace)
        return [event["reason"] for event in events if event["involvedObject"]["name"] == "typo"]

    eventually(lambda: "AdoptLabelUnknown" in event_reasons(), "the object itself says so")
    assert not is_there(fleet, "typo")
