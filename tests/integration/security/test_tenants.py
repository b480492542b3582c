"""Limits of a tenant with ProfiledJobs, tested as the tenant on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.kubectl import Kubectl
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from tests.patience import eventually

from ..chart.release import Release
from .tenants import Object, Tenants

pytestmark = pytest.mark.cluster

NOT_JOBS = "may not create Jobs in namespace research: ask for the right to create them"
NOT_STATUS = "the status of a ProfiledJob is written by the operator alone"
NOT_LABELS = f"the labels {LABEL_JOB} and {LABEL_REVISION} are for"


@pytest.fixture
def bert(tenants: Tenants) -> Iterator[str]:
    """A suspended ProfiledJob, created by a user with that right."""
    assert tenants.refusal("editor", "create", tenants.job("bert", suspend=True)) == ""
    yield "bert"
    tenants.kubectl("delete", "profiledjob", "bert", "--namespace=research")


def template(**spec: Any) -> Object:
    containers = [{"name": "trainer", "image": "example.com/other:1"}]
    return {"spec": {"workload": {"job": {"template": {"spec": {"containers": containers, **spec}}}}}}


# --- what runs ------------------------------------------------------------------------------------------------------


def test_who_may_not_create_jobs_may_not_have_them_created(tenants: Tenants) -> None:
    body = tenants.job("mine")
    assert NOT_JOBS in tenants.refusal("writer", "create", body)
    assert NOT_JOBS in tenants.refusal("writer", "apply", body, "--server-side")
    assert tenants.refusal("editor", "create", body, "--dry-run=server") == ""


def unversioned(body: Object) -> Object:
    """The object without its resource version, because the operator writes the status concurrently."""
    del body["metadata"]["resourceVersion"]
    return body


def test_an_update_is_no_way_round_it(tenants: Tenants, bert: str) -> None:
    assert NOT_JOBS in tenants.patched("writer", "profiledjob", bert, template(serviceAccountName="admin"))
    replaced = unversioned(tenants.kubectl.json("get", "profiledjob", bert, "--namespace=research"))
    replaced["spec"]["workload"]["job"]["template"]["spec"]["containers"][0]["image"] = "example.com/other:1"
    assert NOT_JOBS in tenants.refusal("writer", "replace", replaced)
    replaced["metadata"] = {"name": bert, "namespace": "research"}
    assert NOT_JOBS in tenants.refusal("writer", "apply", replaced, "--server-side", "--force-conflicts")
    assert tenants.patched("editor", "profiledjob", bert, template(), "--dry-run=server") == ""


def test_a_variant_is_no_way_round_it(tenants: Tenants, bert: str) -> None:
    def variant(**spec: Any) -> Object:
        return {"spec": {"placement": {"variants": [{"vendor": "NVIDIA", "template": {"spec": spec}}]}}}

    mine = variant(containers=[{"name": "trainer", "command": ["sh", "-c", "mine"]}])
    assert NOT_JOBS in tenants.patched("writer", "profiledjob", bert, mine)
    assert tenants.patched("editor", "profiledjob", bert, mine, "--dry-run=server") == ""
    admin = variant(serviceAccountName="admin")
    assert "must not be set in a variant" in tenants.patched("editor", "profiledjob", bert, admin)


def test_who_may_not_update_an_object_may_not_name_it(tenants: Tenants) -> None:
    for api, kind in (("batch/v1", "Job"), ("jobset.x-k8s.io/v1alpha2", "JobSet")):
        body = tenants.job("mine")
        del body["spec"]["workload"]
        body["spec"]["workloadRef"] = {"apiVersion": api, "kind": kind, "name": "theirs"}
        assert f"is about {kind} theirs, and writer may not update it" in tenants.refusal("writer", "create", body)
    assert tenants.refusal("owner", "create", body, "--dry-run=server") != "", "of Jobs alone"
    body["spec"]["workloadRef"] = {"apiVersion": "batch/v1", "kind": "Job", "name": "theirs"}
    assert tenants.refusal("owner", "create", body, "--dry-run=server") == ""
    assert tenants.refusal("changer", "create", body, "--dry-run=server") == ""
    body["spec"]["adoption"] = {"change": "Recreate"}
    assert tenants.refusal("owner", "create", body, "--dry-run=server") == ""
    refusal = tenants.refusal("changer", "create", body, "--dry-run=server")
    assert "may make Job theirs anew, and changer may not create and delete it" in refusal


def test_what_does_not_run_may_be_changed_without_that_right(tenants: Tenants, bert: str) -> None:
    change: Object = {"spec": {"adaptation": {"mode": "Off"}, "targets": {"budget": "10"}, "suspend": True}}
    assert tenants.patched("writer", "profiledjob", bert, change) == ""


@pytest.fixture
def ranker(tenants: Tenants) -> Iterator[str]:
    """A suspended server of one or two replicas."""
    body = tenants.job("ranker", suspend=True)
    container = {"name": "server", "image": "x", "readinessProbe": {"httpGet": {"path": "/ready", "port": 8000}}}
    body["spec"]["workload"] = {
        "server": {
            "port": 8000,
            "metrics": {"port": 8002},
            "replicas": {"min": 1, "max": 2},
            "template": {"spec": {"containers": [container]}},
        }
    }
    del body["spec"]["elasticity"]
    body["spec"]["targets"] = {"latency": {"p99": "50ms"}}
    assert tenants.refusal("editor", "create", body) == ""
    yield "ranker"
    tenants.kubectl("delete", "profiledjob", "ranker", "--namespace=research")


def test_scaling_changes_the_replicas_within_the_rules_and_nothing_else(tenants: Tenants, ranker: str) -> None:
    before = tenants.kubectl.json("get", "profiledjob", ranker, "--namespace=research")["spec"]
    scale = {"spec": {"replicas": 2, "workload": {"server": {"chipsPerReplica": 64}}}}
    assert tenants.patched("scaler", "profiledjob", ranker, scale, "--subresource=scale") == ""
    after = tenants.kubectl.json("get", "profiledjob", ranker, "--namespace=research")["spec"]
    before["workload"]["server"]["replicas"]["min"] = 2
    assert after == before
    for replicas, message in ((3, "must be at least min"), (0, "should be greater than or equal to 1")):
        refusal = tenants.patched(
            "scaler", "profiledjob", ranker, {"spec": {"replicas": replicas}}, "--subresource=scale"
        )
        assert message in refusal, refusal
    assert "forbidden" in tenants.patched("scaler", "profiledjob", ranker, {"spec": {"suspend": False}})


def test_the_rules_of_the_schema_hold_for_updates_too(tenants: Tenants, bert: str) -> None:
    for change, message in (
        (template(nodeName="a100-0"), "must not be set, since it goes round the scheduler"),
        ({"spec": {"elasticity": {"minChips": 64}}}, "must not exceed maxChips"),
        ({"spec": {"managedBy": "example.com/other"}}, "must not change"),
    ):
        assert message in tenants.patched("owner", "profiledjob", bert, change)


def test_another_namespace_is_out_of_reach(tenants: Tenants, kubectl: Kubectl) -> None:
    body = tenants.job("mine")
    body["metadata"]["namespace"] = "prod"
    with pytest.raises(Exception, match="forbidden"):
        kubectl("create", "-f-", "--as=editor", "--namespace=prod", stdin=json.dumps(body))


# --- the operator's memory ------------------------------------------------------------------------------------------


def test_the_status_is_the_operators(tenants: Tenants, bert: str, release: Release) -> None:
    change: Object = {"status": {"cost": {"saved": "1000000"}}}
    assert NOT_STATUS in tenants.patched("owner", "profiledjob", bert, change, "--subresource=status")
    whole = unversioned(tenants.kubectl.json("get", "profiledjob", bert, "--namespace=research"))
    whole.setdefault("status", {})["cost"] = {"saved": "1000000"}
    assert NOT_STATUS in tenants.refusal("owner", "replace", whole, "--subresource=status")
    whole["metadata"] = {"name": bert, "namespace": "research"}
    arguments = ("--server-side", "--force-conflicts", "--subresource=status")
    assert NOT_STATUS in tenants.refusal("owner", "apply", whole, *arguments)
    # It is allowed to this user.
    eventually(lambda: tenants.condition(bert, "Placed") != {}, release.operators)


def test_an_update_of_the_object_does_not_write_the_status(tenants: Tenants, bert: str) -> None:
    change: Object = {"status": {"cost": {"saved": "1000000"}}, "spec": {"targets": {"budget": "11"}}}
    assert tenants.patched("owner", "profiledjob", bert, change) == ""
    job = tenants.kubectl.json("get", "profiledjob", bert, "--namespace=research")
    assert job["spec"]["targets"]["budget"] == "11"
    assert job.get("status", {}).get("cost", {}).get("saved") != "1000000"


def test_a_status_can_not_be_brought_along(tenants: Tenants) -> None:
    body = tenants.job("forged", suspend=True) | {"status": {"cost": {"saved": "1000000"}}}
    assert tenants.refusal("owner", "create", body) == ""
    job = tenants.kubectl.json("get", "profiledjob", "forged", "--namespace=research")
    tenants.kubectl("delete", "profiledjob", "forged", "--namespace=research")
    assert job.get("status", {}).get("cost", {}).get("saved") != "1000000"


# --- pods that pretend ----------------------------------------------------------------------------------------------


def pod(name: str, labels: dict[str, str]) -> Object:
    container = {"name": "c", "image": "example.com/c:1"}
    meta = {"name": name, "namespace": "research", "labels": labels}
    spec = {"containers": [container], "schedulerName": "nobody"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_pods_of_ones_own_are_nobodys_revision(tenants: Tenants) -> None:
    ours = {LABEL_JOB: "bert", LABEL_REVISION: "1"}
    assert NOT_LABELS in tenants.refusal("owner", "create", pod("forged", ours))
    assert NOT_LABELS in tenants.refusal("owner", "create", pod("hidden", {LABEL_JOB: "x"}))
    assert tenants.refusal("owner", "create", pod("plain", {"app": "mine"})) == ""
    try:
        assert NOT_LABELS in tenants.patched("owner", "pod", "plain", {"metadata": {"labels": ours}})
        assert tenants.patched("owner", "pod", "plain", {"metadata": {"labels": {"app": "other"}}}) == ""
    finally:
        tenants.kubectl("delete", "pod", "plain", "--namespace=research", "--wait=false")


def test_nor_are_those_of_a_job_of_ones_own(tenants: Tenants) -> None:
    labels = {LABEL_JOB: "bert", LABEL_REVISION: "1"}
    spec = {**pod("x", {})["spec"], "restartPolicy": "Never"}
    meta = {"name": "forged", "namespace": "research"}

    def job(metadata: Object, inner: Object) -> Object:
        template = {"metadata": inner, "spec": spec}
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta | metadata, "spec": {"template": template}}

    assert NOT_LABELS in tenants.refusal("owner", "create", job({"labels": labels}, {}))
    assert NOT_LABELS in tenants.refusal("owner", "create", job({}, {"labels": labels}))
    assert tenants.refusal("owner", "create", job({}, {}), "--dry-run=server") == ""


def test_a_real_pod_keeps_its_labels(tenants: Tenants, release: Release) -> None:
    assert tenants.refusal("editor", "create", tenants.job("real")) == ""
    try:
        selector = f"--selector={LABEL_JOB}=real"

        def running() -> list[str]:
            pods = release.kubectl.json("get", "pods", "--namespace=research", selector)["items"]
            return [item["metadata"]["name"] for item in pods if item["status"].get("phase") == "Running"]

        # Its pod was admitted for the Job controller, and its Job for the operator.
        eventually(lambda: bool(running()), release.operators)
        for change in ({LABEL_JOB: None}, {LABEL_REVISION: "2"}):
            assert NOT_LABELS in tenants.patched("owner", "pod", running()[0], {"metadata": {"labels": change}})
            assert NOT_LABELS in tenants.patched("owner", "job", "real-r1", {"metadata": {"labels": change}})
        assert tenants.patched("owner", "pod", running()[0], {"metadata": {"labels": {"team": "nlp"}}}) == ""
    finally:
        release.kubectl("delete", "profiledjob", "real", "--namespace=research")


# --- pods that want too much ----------------------------------------------------------------------------------------


def refused_child(tenants: Tenants, release: Release, name: str, template: Object, reason: str) -> Object:
    """The condition Placed of a job once it has this reason."""
    assert tenants.refusal("editor", "create", tenants.job(name, template=template)) == ""
    try:
        eventually(lambda: tenants.condition(name, "Placed").get("reason") == reason, release.operators)
        return tenants.condition(name, "Placed")
    finally:
        release.kubectl("delete", "profiledjob", name, "--namespace=research")


def test_nodes_outside_the_pool_are_refused(tenants: Tenants, release: Release) -> None:
    product = "nvidia.com/gpu.product"
    template: Object = {"spec": {"nodeSelector": {product: "NVIDIA-A10G"}}}
    placed = refused_child(tenants, release, "elsewhere", template, "NoFeasiblePool")
    assert placed["status"] == "False"
    assert f"asks for {product}=NVIDIA-A10G" in placed["message"]


def test_pod_security_judges_the_childs_pods(tenants: Tenants, release: Release) -> None:
    """The namespace's standard applies to pods of the Job controller: the operator does not bypass it."""
    volumes = [{"name": "host", "hostPath": {"path": "/"}}]
    body = tenants.job("greedy", template={"spec": {"volumes": volumes, "hostNetwork": True}})
    assert tenants.refusal("editor", "create", body) == ""

    def messages() -> str:
        return release.kubectl("events", "--for=job/greedy-r1", "--namespace=research")

    try:
        eventually(lambda: 'violates PodSecurity "baseline' in messages(), release.operators)
        pods = release.kubectl.json("get", "pods", "--namespace=research", f"--selector={LABEL_JOB}=greedy")
        assert pods["items"] == []
    finally:
        release.kubectl("delete", "profiledjob", "greedy", "--namespace=research")


def test_the_childs_namespace_is_the_jobs(tenants: Tenants, release: Release) -> None:
    body = tenants.job("homely", template={"metadata": {"namespace": "prod", "labels": {"app": "homely"}}})
    assert tenants.refusal("editor", "create", body) == ""

    def found() -> list[Object]:
        selector = f"--selector={LABEL_JOB}=homely"
        return list(release.kubectl.json("get", "jobs,pods", "--all-namespaces", selector)["items"])

    try:
        eventually(lambda: {item["kind"] for item in found()} == {"Job", "Pod"}, release.operators)
        assert {item["metadata"]["namespace"] for item in found()} == {"research"}
    finally:
        release.kubectl("delete", "profiledjob", "homely", "--namespace=research")
