"""What the chart's admission policies keep from people who may write JobSets or ProfiledJobs, but not both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devcluster.cluster import Running
from devcluster.spec import DevclusterError
from rightpool.cluster.client import ClusterClient
from rightpool.contract import GROUP, LABEL_JOB
from rightpool.workloads.kinds.job_set import JOB_SETS
from rightpool.workloads.kinds.leader_worker_set import LEADER_WORKER_SETS
from rightpool.workloads.kinds.train_job import RUNTIMES, TRAIN_JOBS
from tests.integration.faults.fleet import Body

pytestmark = pytest.mark.cluster

LABELS = {"labels": {LABEL_JOB: "llm"}}
POD = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/trainer:1"}]}}


@pytest.fixture
def refusal(own_cluster: Running, client: ClusterClient, namespace: str) -> Any:
    """What a user who may create such objects in this namespace is message; empty where one is taken."""
    of_trainer = [TRAIN_JOBS.plural, RUNTIMES.plural]
    for user, group, resources in (
        ("jobsets", JOB_SETS.group, ["jobsets"]),
        ("trainer", TRAIN_JOBS.group, of_trainer),
        ("groups", LEADER_WORKER_SETS.group, [LEADER_WORKER_SETS.plural]),
        ("sets", "apps", ["statefulsets"]),
        ("profiledjobs", GROUP, ["profiledjobs"]),
    ):
        about = {"name": user, "namespace": namespace}
        rule = {"apiGroups": [group], "resources": resources, "verbs": ["create"]}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}
        version = {"apiVersion": "rbac.authorization.k8s.io/v1"}
        own_cluster.kubectl.apply(
            [
                {**version, "kind": "Role", "metadata": about, "rules": [rule]},
                {**version, "kind": "RoleBinding", "metadata": about, "roleRef": role}
                | {"subjects": [{"kind": "User", "name": user}]},
            ]
        )

    def asked(user: str, body: Body) -> str:
        try:
            own_cluster.kubectl(
                *("create", f"--as={user}", f"--namespace={namespace}", "--dry-run=server", "-f-"),
                stdin=json.dumps(body),
            )
        except DevclusterError as error:
            return str(error)
        return ""

    return asked


def job_set(about: Body | None = None, job: Body | None = None, pod: Body | None = None) -> Body:
    template = {"metadata": job or {}, "spec": {"template": {"metadata": pod or {}, **POD}}}
    spec = {"replicatedJobs": [{"name": "workers", "template": template}]}
    kind = {"apiVersion": JOB_SETS.api_version, "kind": JOB_SETS.kind}
    return {**kind, "metadata": {"name": "forged", **(about or {})}, "spec": spec}


@pytest.mark.parametrize(
    "forged", [{"about": LABELS}, {"job": LABELS}, {"pod": LABELS}], ids=lambda part: next(iter(part))
)
def test_nobody_else_gives_a_jobset_the_labels_of_a_profiledjob(refusal: Any, forged: Body) -> None:
    assert "are for JobSets that a ProfiledJob becomes" in refusal("jobsets", job_set(**forged))
    assert refusal("jobsets", job_set()) == ""


def runtime(about: Body | None = None, job: Body | None = None, pod: Body | None = None) -> Body:
    kind = {"apiVersion": RUNTIMES.api_version, "kind": RUNTIMES.kind, "metadata": {"name": "forged"}}
    return {**kind, "spec": {"template": {"metadata": about or {}, "spec": job_set(job=job, pod=pod)["spec"]}}}


def train_job(about: Body | None = None, patch: Body | None = None) -> Body:
    kind = {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": "forged", **(about or {})},
    }
    patched = {"manager": "example.com/me", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patch]}}}}
    spec = {"runtimeRef": {"kind": RUNTIMES.kind, "name": "none"}, "runtimePatches": [patched] if patch else []}
    return {**kind, "spec": spec}


@pytest.mark.usefixtures("trainer")
def test_nobody_else_gives_a_trainjob_or_its_runtime_the_labels_of_a_profiledjob(refusal: Any) -> None:
    words = "are for TrainJobs that a ProfiledJob becomes"
    for forged in ({"about": LABELS}, {"job": LABELS}, {"pod": LABELS}):
        assert words in refusal("trainer", runtime(**forged))
    assert refusal("trainer", runtime()) == ""
    pods = {"name": "workers", "template": {"spec": {"template": {"metadata": LABELS}}}}
    for body in (
        train_job(LABELS),
        train_job(patch=pods),
        train_job(patch={"name": "n", "template": {"metadata": LABELS}}),
    ):
        assert words in refusal("trainer", body)
    plain = refusal("trainer", train_job())
    assert words not in plain and "must be created before the TrainJob" in plain, "Trainer itself has looked at it"


@pytest.mark.usefixtures("leader_worker_set")
def test_nobody_else_gives_a_leaderworkerset_or_a_statefulset_the_labels_of_a_profiledjob(refusal: Any) -> None:
    pods = {"spec": {"containers": POD["spec"]["containers"]}}
    kind = {"apiVersion": LEADER_WORKER_SETS.api_version, "kind": LEADER_WORKER_SETS.kind}

    def of_groups(about: Body | None = None, **templates: Body) -> Body:
        group = {"workerTemplate": pods} | {name: {"metadata": part, **pods} for name, part in templates.items()}
        spec = {"leaderWorkerTemplate": group}
        return {**kind, "metadata": {"name": "forged", **(about or {})}, "spec": spec}

    for forged in (of_groups(LABELS), of_groups(workerTemplate=LABELS), of_groups(leaderTemplate=LABELS)):
        assert "are for LeaderWorkerSets that a ProfiledJob becomes" in refusal("groups", forged)
    assert refusal("groups", of_groups(leaderTemplate={})) == ""
    labels = {"app": "forged"}
    template = {"metadata": {"labels": {**labels, **LABELS["labels"]}}, **pods}
    spec = {"selector": {"matchLabels": labels}, "serviceName": "forged", "template": template}
    forged = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "forged"}, "spec": spec}
    assert "are for Deployments and StatefulSets that" in refusal("sets", forged)


def test_who_may_not_create_jobsets_may_not_have_them_created(refusal: Any) -> None:
    workload = {"jobSet": {"template": job_set()["spec"]}}
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "ProfiledJob", "metadata": {"name": "mine"}}
    message = refusal("profiledjobs", {**body, "spec": {"workload": workload}})
    assert "profiledjobs may not create JobSets in namespace" in message
    assert "may not create Jobs in" in refusal(
        "profiledjobs", {**body, "spec": {"workload": {"job": {"template": POD}}}}
    )
