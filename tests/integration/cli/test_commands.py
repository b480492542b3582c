"""The commands as processes against a real API server: as an admin, as a tenant with few rights, and interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
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
from rightpool.workloads.pod_set import PodSet
from tests.patience import PATIENCE, eventually

ROOT = Path(__file__).parents[3]
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "trainer", "image": "example.com/trainer:1"}]}}

pytestmark = pytest.mark.cluster


def rightpool(*words: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rightpool.cli.main", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
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

    def served() -> bool:
        try:
            custom.list_cluster_custom_object(GROUP, VERSION, "profiledjobs", limit=1)
        except ApiException:
            return False
        return True

    eventually(served, "profiledjobs are served")
    yield found
    found.close()


@pytest.fixture
def job(api: client.ApiClient, namespace: str) -> str:
    """A job with a status and another manager, so that an operator on this cluster ignores it."""
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
        "workloadHash": workload_hash([PodSet("worker", TEMPLATE)]),
        "requestedChips": 4,
        "requestedReplicas": 1,
    }
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now.isoformat()}
        for kind, reason in (("Placed", "Running"), ("Profiled", "Measured"))
    ]
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
    cost = {"perHour": "20.28", "chips": 4, "spent": "20.28", "saved": "0.00", "asOf": now.isoformat()}
    status = {"cost": cost, "conditions": conditions, "placement": placement, "profile": measured | about}
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


def test_explain_draws(kubeconfig: Path, namespace: str, job: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn = rightpool("explain", job, "-n", namespace, "--plot", str(tmp_path / "job.svg"), kubeconfig=kubeconfig)
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert "Decision" in drawn.stdout and "</svg>" in (tmp_path / "job.svg").read_text()
    nowhere = str(tmp_path / "no" / "job.png")
    failed = rightpool("explain", job, "-n", namespace, "--plot", nowhere, kubeconfig=kubeconfig)
    assert failed.returncode == 1
    assert failed.stderr == f"rightpool explain: --plot: {nowhere} can't be written: No such file or directory\n"
    assert rightpool("explain", "--plot", "all.svg", kubeconfig=kubeconfig).stderr == (
        "rightpool explain: --plot draws one job: name it\n"
    )


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


def test_a_closed_pipe_is_no_error(kubeconfig: Path, namespace: str, job: str) -> None:
    command = f"{sys.executable} -m rightpool.cli.main explain {job} -n {namespace} | true; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(kubeconfig)}
    result = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.stdout, result.stderr) == ("0\n", "")


@pytest.fixture
def tenant(api: client.ApiClient, kubeconfig: Path, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a user who may only read ProfiledJobs of one namespace, and pools."""
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


def test_a_tenant_without_rights_gets_the_missing_right(tenant: Path) -> None:
    result = rightpool("top", "-A", kubeconfig=tenant)
    assert result.returncode == 1
    assert result.stderr.startswith(
        "rightpool top: the cluster does not allow it: profiledjobs.rightpool.dev is forbidden"
    )


def test_the_page_shows_a_tenant_what_a_tenant_may_see_until_it_is_interrupted(
    tenant: Path, namespace: str, job: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rightpool.cli.main", "ui", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(tenant)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:[0-9]+/", line)
        assert found is not None and "ctrl-C ends it" in line, line
        with urllib.request.urlopen(found[0], timeout=PATIENCE) as answer:
            fleet = answer.read().decode()
        assert f"/jobs/{namespace}/{job}" in fleet and "jobs of other namespaces can&#39;t be listed" in fleet
        with urllib.request.urlopen(f"{found[0]}jobs/{namespace}/{job}", timeout=PATIENCE) as answer:
            page = answer.read().decode()
        assert "4 chips of a100 in 1 pod" in page and "Events can&#39;t be read" in page
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, error) == (130, "")
    finally:
        process.kill()
        process.wait()


def test_an_interrupt_ends_it_quietly(tmp_path: Path) -> None:
    """SIGINT during a request to an API server that never answers."""
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
            _, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, error) == (130, "")
