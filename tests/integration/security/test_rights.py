"""Rights: none is missing, none is unused, and each is documented.

First a job runs through its life cycle. The operator's requests during that time are read from the audit log.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from devcluster.kubectl import Kubectl
from rightpool.contract import LABEL_JOB
from tests.patience import eventually

from ..chart.release import CHART, NAME, SYSTEM, Release
from .rights import SECURITY, SOMETIMES, UNASKED, Right, asked, covered, documented, granted
from .tenants import Object, Tenants

pytestmark = pytest.mark.cluster

ENDED = ("", "services", "delete")
READ = ("", "configmaps", "list")
USER = f"system:serviceaccount:{SYSTEM}:{NAME}"


def logs(release: Release) -> list[Path]:
    return sorted(release.cluster.spec.logs.glob("audit*.log"))


def live(tenants: Tenants, release: Release, name: str) -> None:
    """A gang's life: held up by somebody's Service of its child's name, started, stopped, resumed, started anew with
    another program where a Service of an earlier child is in the way, and given up."""
    kubectl = release.kubectl
    meta = {"name": f"{name}-r1", "namespace": tenants.namespace}
    theirs = {"selector": {"app": "theirs"}, "ports": [{"port": 80}], "clusterIP": "None"}
    kubectl.apply([{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": theirs}])
    job = tenants.job(name, chips=8)
    job["spec"]["workload"]["job"]["replicas"] = 2
    job["spec"]["elasticity"] = {"minChips": 16, "maxChips": 16}
    kubectl.apply([job])
    where = f"--namespace={tenants.namespace}"

    def children(kind: str) -> list[Object]:
        return list(kubectl.json("get", kind, where, f"--selector={LABEL_JOB}={name}")["items"])

    def edit(change: Object) -> None:
        assert tenants.patched("editor", "profiledjob", name, change) == ""

    eventually(lambda: children("jobs") != [], release.operators)
    time.sleep(5)
    assert children("pods") == []
    assert kubectl.json("get", "service", f"{name}-r1", where)["spec"]["selector"] == {"app": "theirs"}
    kubectl("delete", "service", f"{name}-r1", where)
    eventually(lambda: tenants.condition(name, "Placed").get("status") == "True", release.operators)
    assert {item["metadata"]["name"] for item in children("services")} == {f"{name}-r1"}
    edit({"spec": {"suspend": True}})
    eventually(lambda: all(item["spec"]["suspend"] for item in children("jobs")), release.operators)
    eventually(lambda: children("pods") == [], release.operators)
    edit({"spec": {"suspend": False}})
    eventually(lambda: tenants.condition(name, "Placed").get("status") == "True", release.operators)
    # The garbage collector sees to it at once; the finalizer keeps it for the operator to find.
    gone = {"apiVersion": "batch/v1", "kind": "Job", "name": f"{name}-r2", "uid": "gone", "controller": True}
    left = {"name": f"{name}-r2", "namespace": tenants.namespace, "finalizers": ["example.com/test"]}
    left_over = {**left, "ownerReferences": [gone]}
    began = now()
    kubectl.apply([{"apiVersion": "v1", "kind": "Service", "metadata": left_over, "spec": {"clusterIP": "None"}}])
    containers = [{"name": "trainer", "image": "example.com/train:2"}]
    edit({"spec": {"workload": {"job": {"template": {"spec": {"containers": containers}}}}}})
    eventually(lambda: [i["metadata"]["name"] for i in children("jobs")] == [f"{name}-r2"], release.operators)
    eventually(lambda: ENDED in asked_since(release, began), release.operators)
    free = '{"metadata":{"finalizers":null}}'
    kubectl("patch", "service", f"{name}-r2", where, "--type=merge", f"--patch={free}")
    eventually(lambda: [i["metadata"]["name"] for i in children("services")] == [f"{name}-r2"], release.operators)
    kubectl("delete", "profiledjob", name, where)


def book(tenants: Tenants, release: Release, name: str) -> None:
    """A job's cost is booked and stored. Books are stored every ten minutes, and when a leader ends: one creates what
    the next one updates."""
    kubectl = release.kubectl
    kubectl.apply([tenants.job(name)])
    eventually(lambda: tenants.condition(name, "Placed").get("status") == "True", release.operators)
    for _ in range(3):
        began, leader = now(), release.leader()
        kubectl("delete", "pod", leader, f"--namespace={SYSTEM}")
        release.until_led()
        # The next one has read what is stored, and books the job in the same cycle.
        eventually(lambda began=began: READ in asked_since(release, began), release.operators)  # type: ignore[misc]
    kubectl("delete", "profiledjob", name, f"--namespace={tenants.namespace}")


def declare_policy(release: Release) -> None:
    """The operator says at the policy that it holds."""
    kubectl = release.kubectl
    metadata = {"name": "default"}
    kubectl.apply(
        [{"apiVersion": "rightpool.dev/v1alpha1", "kind": "PlacementPolicy", "metadata": metadata, "spec": {}}]
    )
    eventually(lambda: kubectl.json("get", "placementpolicy", "default").get("status") is not None, release.operators)


def asked_since(release: Release, since: str) -> set[tuple[str, str, str]]:
    return {right.plain for right in asked(logs(release), USER, since).rights}


def now() -> str:
    """The present time in the format of the log."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def lived(release: Release, tenants: Tenants) -> str:
    """The time before a policy was declared, and a job ran through its life cycle and was booked."""
    began = now()
    declare_policy(release)
    live(tenants, release, "gang")
    book(tenants, release, "booked")
    return began


def test_nothing_is_missing(release: Release, lived: str) -> None:
    assert asked(logs(release), USER, since=lived).refused == set()


def test_nothing_is_unused(release: Release, lived: str) -> None:
    rights = {right.plain for right in granted(release.kubectl, SYSTEM, NAME)}
    assert rights - asked_since(release, "") - SOMETIMES == UNASKED
    assert rights >= SOMETIMES, "a right that is granted no more is no exception"


def test_every_right_is_explained_and_no_other(release: Release, lived: str) -> None:
    assert documented(SECURITY.read_text()) == {right.plain for right in granted(release.kubectl, SYSTEM, NAME)}


def test_the_service_account_can_do_no_more_than_that(release: Release) -> None:
    """Critical rights do not come from another source, such as a group."""
    kubectl = release.kubectl
    for verb, resource in (
        ("get", "secrets"),
        ("list", "secrets"),
        ("create", "pods"),
        ("create", "pods/exec"),
        ("get", "pods/log"),
        ("create", "serviceaccounts/token"),
        ("patch", "nodes"),
        ("update", "profiledjobs"),
        ("delete", "acceleratorpools"),
        ("create", "clusterrolebindings"),
        ("impersonate", "users"),
    ):
        assert not can(kubectl, verb, resource), f"{verb} {resource}"


def can(kubectl: Kubectl, verb: str, resource: str) -> bool:
    """Whether `can-i` says yes. It exits with 1 for no."""
    script = {"resource": resource.partition("/")[0], "subresource": resource.partition("/")[2], "verb": verb}
    groups = {"profiledjobs": "rightpool.dev", "acceleratorpools": "rightpool.dev"}
    attributes = {**script, "group": groups.get(script["resource"], ""), "namespace": "research"}
    if script["resource"] == "clusterrolebindings":
        attributes |= {"group": "rbac.authorization.k8s.io", "namespace": ""}
    account = ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": USER, "groups": account, "resourceAttributes": attributes},
    }
    answer = json.loads(kubectl("create", "-f-", "--output=json", stdin=json.dumps(review)))
    return bool(answer["status"]["allowed"])


@pytest.fixture(scope="module")
def narrowed(release: Release, lived: str) -> Iterator[str]:
    """The time since which the release watches one namespace, with Roles."""
    release.install(CHART, "watchNamespaces={research}")
    release.until_led()

    def operators() -> int:
        selector = "--selector=app.kubernetes.io/name=rightpool"
        return len(release.kubectl.json("get", "pods", f"--namespace={SYSTEM}", selector)["items"])

    # Earlier replicas watched all namespaces, and continue until they have ended.
    eventually(lambda: operators() == 2, release.operators)
    yield now()
    release.install(CHART)


def test_with_roles_alone_it_works_as_before(release: Release, tenants: Tenants, narrowed: str) -> None:
    rights = granted(release.kubectl, SYSTEM, NAME)
    everywhere = {right for right in rights if not right.scope}
    assert {right.resource for right in everywhere} == {
        *("acceleratorpools", "acceleratorpools/status", "placementpolicies", "placementpolicies/status"),
        *("nodes", "persistentvolumes", "namespaces", "deviceclasses", "resourceslices", "clustertrainingruntimes"),
    }
    assert {right.scope for right in rights} == {"", "default", "research", SYSTEM}
    about_pools = {right.plain for right in rights if right.scope == "default"}
    assert about_pools == {("", "events", "create"), ("", "events", "patch")}
    live(tenants, release, "narrow")
    seen = asked(logs(release), USER, since=narrowed)
    assert seen.refused == set()
    assert [right for right in sorted(seen.rights) if not covered(right, rights)] == []
    assert Right("batch", "jobs", "create", "research") in seen.rights
    pools = release.kubectl.json("get", "acceleratorpools")["items"]
    assert [pool["status"]["chips"].keys() for pool in pools] == [{"total"}] * len(pools), "others' pods are not known"


def test_it_does_not_look_elsewhere(release: Release, tenants: Tenants, narrowed: str) -> None:
    other = Tenants(release.kubectl, "prod")
    release.kubectl.apply([other.job("unseen")])
    release.kubectl.apply([tenants.job("seen", suspend=True)])
    try:
        eventually(lambda: tenants.condition("seen", "Placed") != {}, release.operators)
        assert other.condition("unseen", "Placed") == {}
        scopes = {right.scope for right in asked(logs(release), USER, since=narrowed).rights}
        assert "prod" not in scopes
    finally:
        release.kubectl("delete", "profiledjob", "seen", "--namespace=research")
        release.kubectl("delete", "profiledjob", "unseen", "--namespace=prod")
