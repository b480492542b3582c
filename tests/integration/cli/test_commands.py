"""The commands as processes against a real API server: as an admin, as a tenant with few rights, and interrupted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from rightpool.contract import GROUP, VERSION
from rightpool.workloads.names import workload_hash

ROOT = Path(__file__).parents[3]
SECONDS = 240
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]}}

pytestmark = pytest.mark.cluster


def rightpool(*words: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rightpool.cli.main", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd="/",
    )


def answer(*words: str, kubeconfig: Path) -> dict[str, Any]:
    result = rightpool(*words, "-o", "json", kubeconfig=kubeconfig)
    assert result.returncode == 0, result.stderr
    return dict(json.loads(result.stdout))


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[client.ApiClient]:
    """The API server with the resources of this checkout."""
    found = config.new_client_from_config(str(kubeconfig))
    extensions = client.ApiextensionsV1Api(found)
    for path in sorted((ROOT / "crds").glob("*.yaml")):
        crd = yaml.safe_load(path.read_text(encoding="utf-8"))
        name, content = crd["metadata"]["name"], "application/apply-patch+yaml"
        extensions.patch_custom_resource_definition(name, crd, field_manager="tests", force=True, _content_type=content)
    custom = client.CustomObjectsApi(found)
    for _ in range(1800):
        try:
            custom.list_cluster_custom_object(GROUP, VERSION, "profiledjobs", limit=1)
            break
        except ApiException:
            time.sleep(0.1)
    yield found
    found.close()


@pytest.fixture
def job(api: client.ApiClient, namespace: str) -> str:
    """A job that somebody else manages, so that an operator on this cluster leaves it alone, with a status."""
    custom = client.CustomObjectsApi(api)
    now = datetime.now(UTC).replace(microsecond=0)
    placement = {
        "revision": 1,
        "pool": "a100",
        "chips": 4,
        "replicas": 1,
        "costPerHour": "20.28",
        "since": (now - timedelta(hours=1)).isoformat(),
        "createdAt": (now - timedelta(hours=1)).isoformat(),
        "workloadHash": workload_hash(TEMPLATE, None),
        "requestedChips": 4,
        "requestedReplicas": 1,
    }
    condition = {
        "type": "Profiled",
        "status": "True",
        "reason": "Measured",
        "message": "",
        "lastTransitionTime": now.isoformat(),
    }
    measured = {"samplesPerSecond": "6070", "chipBusy": "0.98", "matrixActive": "0.14", "memoryBandwidth": "0.45"}
    about = {"window": "5m", "measuredAt": now.isoformat(), "bottleneck": "MemoryBandwidth", "quality": "Measured"}
    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ProfiledJob",
        "metadata": {"name": "resnet50", "namespace": namespace},
        "spec": {
            "managedBy": "example.com/nobody",
            "workload": {"job": {"replicas": 1, "chipsPerReplica": 4, "template": TEMPLATE}},
            "elasticity": {"minChips": 4, "maxChips": 4},
        },
    }
    custom.create_namespaced_custom_object(GROUP, VERSION, namespace, "profiledjobs", body)
    status = {"conditions": [condition], "placement": placement, "profile": measured | about}
    custom.patch_namespaced_custom_object_status(
        GROUP, VERSION, namespace, "profiledjobs", "resnet50", {"status": status}
    )
    return "resnet50"


def test_explain(kubeconfig: Path, namespace: str, job: str) -> None:
    found = answer("explain", job, "-n", namespace, kubeconfig=kubeconfig)
    assert found["kind"] == "Explanation"
    assert found["placement"]["pool"] == "a100"
    assert found["profile"]["values"]["samplesPerSecond"] == 6070
    assert found["bottleneck"]["class"] == "MemoryBandwidth"
    assert any("managedBy is example.com/nobody" in note for note in found["notes"])
    table = rightpool("explain", f"{namespace}/{job}", kubeconfig=kubeconfig)
    assert table.returncode == 0 and "4 chips of a100" in table.stdout and "\x1b" not in table.stdout


def test_top_and_pools(kubeconfig: Path, namespace: str, job: str) -> None:
    (line,) = answer("top", "-n", namespace, kubeconfig=kubeconfig)["jobs"]
    assert (line["name"], line["pool"], line["chips"], line["costPerHour"]) == (job, "a100", 4, 20.28)
    everywhere = answer("top", "-A", kubeconfig=kubeconfig)["jobs"]
    assert namespace in {entry["namespace"] for entry in everywhere}
    pools = answer("pools", kubeconfig=kubeconfig)["pools"]
    assert all(pool["chips"]["free"] <= pool["chips"]["total"] for pool in pools)


def test_a_wrong_name_suggests_the_right_one(kubeconfig: Path, namespace: str, job: str) -> None:
    result = rightpool("explain", "resnet5", "-n", namespace, kubeconfig=kubeconfig)
    assert result.returncode == 1
    assert result.stderr == (
        f"rightpool explain: there is no ProfiledJob resnet5 in namespace {namespace}; did you mean {job}?\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error(kubeconfig: Path, namespace: str, job: str) -> None:
    command = f"{sys.executable} -m rightpool.cli.main explain {job} -n {namespace} | true; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(kubeconfig)}
    result = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert (result.stdout, result.stderr) == ("0\n", "")


@pytest.fixture
def tenant(api: client.ApiClient, kubeconfig: Path, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of somebody who may read ProfiledJobs of one namespace, pools, and nothing else."""
    rules = client.RbacAuthorizationV1Api(api)
    core = client.CoreV1Api(api)
    name = f"tenant-{uuid.uuid4().hex[:8]}"
    core.create_namespaced_service_account(namespace, {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    reading = {"apiGroups": [GROUP], "verbs": ["get", "list"]}
    role = {"metadata": {"name": name}, "rules": [reading | {"resources": ["profiledjobs"]}]}
    rules.create_namespaced_role(namespace, role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    rules.create_namespaced_role_binding(
        namespace, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    )
    rules.create_cluster_role({"metadata": {"name": name}, "rules": [reading | {"resources": ["acceleratorpools"]}]})
    rules.create_cluster_role_binding(
        {"metadata": {"name": name}, "roleRef": reference | {"kind": "ClusterRole"}, "subjects": [subject]}
    )
    token = core.create_namespaced_service_account_token(name, namespace, {"spec": {"expirationSeconds": 600}})
    admin = yaml.safe_load(kubeconfig.read_text())
    admin["users"] = [{"name": admin["contexts"][0]["context"]["user"], "user": {"token": token.status.token}}]
    admin["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "tenant.kubeconfig"
    path.write_text(yaml.safe_dump(admin))
    yield path
    rules.delete_cluster_role_binding(name)
    rules.delete_cluster_role(name)


def test_a_tenant_gets_an_explanation_and_notes(tenant: Path, job: str) -> None:
    found = answer("explain", job, kubeconfig=tenant)
    assert found["placement"]["pool"] == "a100"
    notes = " ".join(found["notes"])
    for missing in ("jobs of other namespaces", "counted last", "PlacementPolicy"):
        assert missing in notes
    assert answer("pools", kubeconfig=tenant)["notes"]


def test_a_tenant_who_may_not_is_told_what(tenant: Path) -> None:
    result = rightpool("top", "-A", kubeconfig=tenant)
    assert result.returncode == 1
    assert result.stderr.startswith(
        "rightpool top: the cluster does not let you: profiledjobs.rightpool.dev is forbidden"
    )


def test_an_interrupt_ends_it_quietly(tmp_path: Path) -> None:
    """An API server that accepts and never answers; ctrl-C while it is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = tmp_path / "config"
        entry = {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}
        context = {"cluster": "c", "user": "u"}
        path.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "c", "cluster": entry}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "x", "context": context}],
                    "current-context": "x",
                }
            )
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "rightpool.cli.main", "top"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()
        with connection:
            assert connection.recv(10)
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=SECONDS)
    assert (process.returncode, error) == (130, "")
