"""New pods of an object that was adopted get the profiler, and what is measured by it moves the object."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable

import pytest

from rightpool.api.labels import Labels
from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.resources import EVENTS, POD_TEMPLATES, PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE, INSTALL_CONTAINER, LABEL_JOB, LABEL_REVISION, SIDECAR_CONTAINER
from tests.integration.faults.fleet import A10G, A100, SIMULATION, Body
from tests.integration.faults.site import Site
from tests.integration.kinds.test_in_place import Mine, field, mine, pytestmark
from tests.patience import PATIENCE, eventually

__all__ = ["field", "mine", "pytestmark"]


def profiled(one: Mine, revision: str) -> bool:
    """All pods that train have the profiler and our labels, and no other pod has."""
    pods = one.pods()
    trained = [pod for pod in pods if "nodeSelector" in pod["spec"]]
    others = [pod for pod in pods if pod not in trained]

    def labels(pod: dict[str, dict[str, Labels]]) -> tuple[str | None, str | None]:
        found = pod["metadata"]["labels"]
        return found.get(LABEL_JOB), found.get(LABEL_REVISION)

    names = [[container["name"] for container in pod["spec"].get("initContainers") or ()] for pod in trained]
    assert not any("initContainers" in pod["spec"] or labels(pod)[0] for pod in others)
    return names == [[SIDECAR_CONTAINER, INSTALL_CONTAINER]] * 2 and all(
        labels(pod) == ("llm", revision) for pod in trained
    )


def test_the_profiler_comes_with_the_next_start_and_what_it_measures_moves_it(
    site: Site, mine: Callable[..., Mine]
) -> None:
    site.operate(RIGHTPOOL_ADMITS_PROFILER="true")
    one = mine()
    saved = {"mode": "Signal", "timeout": "10m"}
    one.adopt(placement={"pools": {"allow": [A100, A10G]}}, adaptation={"cooldown": "1h"}, checkpoint=saved)
    client, namespace = one.tenant.client, one.tenant.namespace
    eventually(lambda: client.list_all(POD_TEMPLATES, namespace) != [], "what new pods get is written down")
    remedy = "they get it when they start anew"
    eventually(lambda: remedy in one.tenant.condition("llm", "Profiled").get("message", ""), "the status says so")
    assert one.untouched() and not any("initContainers" in pod["spec"] for pod in one.pods()), "pods stay as they are"
    for pod in one.pods():
        client.delete(PODS, pod["metadata"]["name"], namespace, uid=pod["metadata"]["uid"])
    eventually(lambda: one.runs_on(A100) and profiled(one, "1"), "new pods have it")
    eventually(lambda: one.tenant.condition("llm", "Profiled").get("reason") == "Measured", "it is measured")
    assert one.untouched()
    eventually(lambda: one.runs_on(A10G) and profiled(one, "2"), "it has moved to save money")
    eventually(lambda: one.tenant.outcomes("llm") == ["Verified"], "that was verified")
    client.request(
        "PATCH",
        PROFILED_JOBS.path(namespace, "llm"),
        body={"metadata": {"annotations": {ANNOTATION_RELEASE: "true"}}},
        content=MERGE_CONTENT,
    )
    eventually(lambda: one.runs_on(A100) and not one.placed(A100), "it is back, and its ProfiledJob is gone")
    assert one.untouched()
    eventually(lambda: client.list_all(POD_TEMPLATES, namespace) == [], "what new pods got is gone, too")


@pytest.mark.parametrize("field", ["job", "leaderWorkerSet"], indirect=True)
def test_a_slower_image_is_a_regression_whoever_leads(site: Site, mine: Callable[..., Mine], field: str) -> None:
    """A Job is made anew with it, and a LeaderWorkerSet is edited where it runs."""
    change = anew if field == "job" else in_place
    operator = site.operate(RIGHTPOOL_ADMITS_PROFILER="true")
    one = mine()
    one.adopt(adoption={"change": "Recommend"}, profiling={"interval": "1s", "window": "5s"})
    client, namespace = one.tenant.client, one.tenant.namespace
    eventually(lambda: client.list_all(POD_TEMPLATES, namespace) != [], "what new pods get is written down")
    change(one)
    eventually(lambda: one.runs_on(A100) and profiled(one, "1"), "its new pods have the profiler")
    assert "edit" not in memory(one)
    eventually(lambda: "variation" in memory(one), "windows enough are counted")
    change(one, image="example.com/trainer:2", throughput="0.5")
    eventually(lambda: "edit" in memory(one), "the edit is seen")
    operator.kill()
    assert site.ended(operator, PATIENCE)
    site.operate("b", RIGHTPOOL_ADMITS_PROFILER="true")
    eventually(lambda: one.tenant.condition("llm", "Efficient").get("reason") == "Regressed", "it is judged")
    message = one.tenant.condition("llm", "Efficient")["message"]
    assert "with trainer:2 against trainer:1" in message
    eventually(lambda: ("Regressed", message) in events(one), "an Event says so")
    assert one.tenant.outcomes("llm") == [], "and left as it is"


def memory(one: Mine) -> Body:
    """What the operator goes on from."""
    return json.loads(one.tenant.status("llm").get("workingMemory") or "{}")


def events(one: Mine) -> set[tuple[str, str]]:
    """Reasons and messages."""
    return {(each["reason"], each["message"]) for each in one.tenant.client.list_all(EVENTS, one.tenant.namespace)}


def anew(one: Mine, **change: str) -> None:
    """Its user deletes it, and creates it again."""
    client, namespace, spec = one.tenant.client, one.tenant.namespace, copy.deepcopy(one.before["spec"])
    del spec["selector"], spec["template"]["metadata"]["labels"]
    rewrite(spec["template"], **change)
    client.delete(one.resource, "llm", namespace, propagation="Foreground")
    eventually(lambda: client.list_all(one.resource, namespace) == [], "it is gone")
    client.create(one.resource, {"metadata": {"name": "llm", "namespace": namespace}, "spec": spec})


def in_place(one: Mine, **change: str) -> None:
    """Its user edits it, and its controller makes its pods anew. Without a change they are deleted."""
    template = copy.deepcopy(one.before["spec"]["leaderWorkerTemplate"]["workerTemplate"])
    rewrite(template, **change)
    one.patch({"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}})
    if not change:
        for pod in one.pods():
            one.tenant.client.delete(PODS, pod["metadata"]["name"], one.tenant.namespace, uid=pod["metadata"]["uid"])


def rewrite(template: Body, image: str | None = None, throughput: str | None = None) -> None:
    if image is not None:
        template["spec"]["containers"][0]["image"] = image
    if throughput is not None:
        template["metadata"]["annotations"][f"{SIMULATION}throughput"] = throughput
