"""New pods of an object that was adopted get the profiler, and what is measured by it moves the object."""

from __future__ import annotations

from collections.abc import Callable

from rightpool.api.labels import Labels
from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.resources import POD_TEMPLATES, PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE, INSTALL_CONTAINER, LABEL_JOB, LABEL_REVISION, SIDECAR_CONTAINER
from tests.integration.faults.fleet import A10G, A100
from tests.integration.faults.site import Site
from tests.integration.kinds.test_in_place import Mine, field, mine, pytestmark
from tests.patience import eventually

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
