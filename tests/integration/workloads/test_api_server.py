"""Built Jobs and Services against a real API server, in a namespace that enforces the restricted standard.

Jobs are judged by a server-side dry run; Pod Security judges pods alone, so each Job's pod is dry-run as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from rightpool.api.placement import CapacityType, Placement
from rightpool.api.pool import LinkKind, Slice
from rightpool.api.revision import Revision
from rightpool.api.workload import JobWorkload
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.google import GOOGLE
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.job import JOB
from rightpool.workloads.names import child_name
from rightpool.workloads.overlay import overlaid
from rightpool.workloads.owner import Owner
from rightpool.workloads.service import build_service
from rightpool.workloads.token import revision_token, token_digest

pytestmark = pytest.mark.cluster

APPLY = {"field_manager": "rightpool", "force": True, "_content_type": "application/apply-patch+yaml"}
LINK = Link(LinkKind.ETHERNET, 1e9)
GPU = Pool(
    name="a10g",
    accelerator=Accelerator("A10G-24GB", NVIDIA, "ampere", {}, 1, 1.0, None, LINK, LINK, Price(), True),
    chips_per_node=4,
    resource_name="nvidia.com/gpu",
    node_selector={"node.kubernetes.io/instance-type": "g5.12xlarge"},
    intra_link=LINK,
    inter_link=LINK,
    price=Price(1.0, 0.4),
    total=16,
    free=16,
    tolerations=({"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},),
)
TPU = replace(
    GPU,
    name="v5e",
    accelerator=replace(GPU.accelerator, vendor=GOOGLE),
    resource_name="google.com/tpu",
    slice=Slice(topology="4x4", chips=16),
)
INJECTION = Injection(
    image="registry.example/profiler:1",
    token_sha256=token_digest(revision_token(b"key", "uid", 1)),
    interval_seconds=10.0,
    trace="Auto",
    checkpoint_mode="Signal",
    checkpoint_signal="SIGUSR1",
)


def work(template: dict[str, Any], **fields: Any) -> JobWorkload:
    return JobWorkload(template=template, chip_container="trainer", **fields)


def template(**container: Any) -> dict[str, Any]:
    """A pod within the restricted standard, with many fields that users set."""
    hardened = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "metadata": {"labels": {"team": "nlp"}},
        "spec": {
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [{"name": "fetch", "image": "busybox", "securityContext": hardened}],
            "containers": [
                {
                    "name": "trainer",
                    "image": "python:3.11",
                    "command": ["torchrun", "train.py"],
                    "env": [{"name": "PYTHONPATH", "value": "/app"}],
                    "volumeMounts": [{"name": "ckpt", "mountPath": "/ckpt"}],
                    "securityContext": hardened,
                    **container,
                },
                {"name": "logger", "image": "busybox", "securityContext": hardened},
            ],
            "volumes": [{"name": "ckpt", "emptyDir": {}}],
        },
    }


def ref(chips: int, replicas: int, pool: Pool, capacity: CapacityType) -> Revision:
    return Revision(1, Placement(pool.name, chips, replicas, capacity), "h", 1, 1, 0.0)


def owner(namespace: str, name: str = "bert") -> Owner:
    return Owner(namespace, name, "0b8f6d6e-0000-4000-8000-000000000001")


@pytest.fixture
def api(kubeconfig: Path) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(kubeconfig)) as connection:
        yield connection


@pytest.fixture
def restricted(api: client.ApiClient, namespace: str) -> str:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.CoreV1Api(api).patch_namespace(namespace, {"metadata": {"labels": labels}})
    return namespace


def service_of(owner: Owner, revision: Revision) -> dict[str, Any] | None:
    hosts = JOB.hosts(work(template()), child_name(owner.name, revision.revision), revision.placement.replicas)
    return None if hosts is None else build_service(owner, revision, hosts, owner.reference)


def dry_run(api: client.ApiClient, job: dict[str, Any], service: dict[str, Any] | None) -> Any:
    """Apply the objects of a Revision and one of its pods; returns the Job as the server would store it."""
    namespace = job["metadata"]["namespace"]
    core = client.CoreV1Api(api)
    if service is not None:
        core.patch_namespaced_service(service["metadata"]["name"], namespace, service, dry_run="All", **APPLY)
    stored = client.BatchV1Api(api).patch_namespaced_job(
        job["metadata"]["name"], namespace, job, dry_run="All", field_validation="Strict", **APPLY
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**job["spec"]["template"]["metadata"], "name": "judged", "namespace": namespace},
        "spec": job["spec"]["template"]["spec"],
    }
    core.create_namespaced_pod(namespace, pod, dry_run="All", field_validation="Strict")
    return stored


@pytest.mark.parametrize("injection", [INJECTION, None], ids=["profiled", "plain"])
@pytest.mark.parametrize("capacity", list(CapacityType))
@pytest.mark.parametrize(("pool", "chips", "replicas"), [(GPU, 1, 1), (GPU, 8, 2), (TPU, 16, 4)])
def test_every_shape_is_accepted(
    api: client.ApiClient,
    restricted: str,
    pool: Pool,
    chips: int,
    replicas: int,
    capacity: CapacityType,
    injection: Injection | None,
) -> None:
    revision = ref(chips, replicas, pool, capacity)
    job = JOB.build(owner(restricted), work(template()), "queue", revision, pool, injection)
    stored = dry_run(api, job, service_of(owner(restricted), revision))
    assert stored.spec.completions == replicas
    assert stored.spec.suspend is True
    assert stored.spec.pod_replacement_policy == "Failed"
    init = [container.name for container in stored.spec.template.spec.init_containers]
    assert init == (["rightpool-profiler", "rightpool-agent", "fetch"] if injection else ["fetch"])


def test_the_server_assigns_the_guaranteed_class(api: client.ApiClient, restricted: str) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    wanted = template(resources={"requests": amounts, "limits": amounts})
    for container in [wanted["spec"]["initContainers"][0], wanted["spec"]["containers"][1]]:
        container["resources"] = {"limits": amounts}
    revision = ref(1, 1, GPU, CapacityType.ON_DEMAND)
    job = JOB.build(owner(restricted), work(wanted), None, revision, GPU, INJECTION)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "guaranteed"},
        "spec": job["spec"]["template"]["spec"],
    }
    created = client.CoreV1Api(api).create_namespaced_pod(restricted, pod, dry_run="All")
    assert created.status.qos_class == "Guaranteed"


@pytest.mark.parametrize("name", ["7b-finetune", "a" * 58])
def test_names_at_the_edge_are_accepted(api: client.ApiClient, restricted: str, name: str) -> None:
    revision = ref(8, 2, GPU, CapacityType.ON_DEMAND)
    job = JOB.build(owner(restricted, name), work(template()), None, revision, GPU, INJECTION)
    dry_run(api, job, service_of(owner(restricted, name), revision))


def test_on_failure_is_accepted(api: client.ApiClient, restricted: str) -> None:
    wanted = template()
    wanted["spec"]["restartPolicy"] = "OnFailure"
    job = JOB.build(owner(restricted), work(wanted), None, ref(4, 1, GPU, CapacityType.ON_DEMAND), GPU, INJECTION)
    dry_run(api, job, None)


def test_a_template_with_a_variant_laid_over_it_is_accepted(api: client.ApiClient, restricted: str) -> None:
    variant = {
        "spec": {
            "nodeSelector": {"disk": None},
            "containers": [
                {
                    "name": "trainer",
                    "image": "jax",
                    "command": ["python", "train.py"],
                    "env": [{"name": "PYTHONPATH", "value": "/tpu"}, {"name": "PJRT_DEVICE", "value": "TPU"}],
                    "volumeMounts": [{"name": "ckpt", "mountPath": "/ckpt", "subPath": "tpu"}],
                },
                {"name": "logger", "$patch": "delete"},
            ],
            "volumes": [{"name": "ckpt", "persistentVolumeClaim": {"claimName": "tpu"}}],
        }
    }
    wanted = template()
    wanted["spec"]["nodeSelector"] = {"disk": "ssd"}
    job = JOB.build(
        owner(restricted),
        work(overlaid(wanted, variant)),
        None,
        ref(16, 4, TPU, CapacityType.ON_DEMAND),
        TPU,
        INJECTION,
    )
    (trainer,) = dry_run(api, job, None).spec.template.spec.containers
    assert (trainer.image, trainer.resources.limits) == ("jax", {"google.com/tpu": "4"})
    env = {variable.name: variable.value for variable in trainer.env}
    assert env["PYTHONPATH"].endswith(":/tpu") and env["PJRT_DEVICE"] == "TPU" and "TPU_WORKER_HOSTNAMES" in env


def test_the_server_reports_errors_in_a_template(api: client.ApiClient, restricted: str) -> None:
    job = JOB.build(
        owner(restricted),
        work(template(image="x", securityContext={"privileged": True})),
        None,
        ref(4, 1, GPU, CapacityType.ON_DEMAND),
        GPU,
        INJECTION,
    )
    with pytest.raises(ApiException, match="restricted"):
        dry_run(api, job, None)
