"""`rightpool calibrate` against a real API server: a real pod, an interrupt, few rights, the operator's own writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from devcluster import deps, host, images, recipes
from devcluster.progress import Progress
from devcluster.spec import TEST
from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, PODS
from rightpool.contract import GROUP, VERSION
from rightpool.hardware.catalog import load_catalog
from rightpool.runtime.act.pool_publisher import PoolPublisher
from rightpool.runtime.act.status_publisher import StatusPublisher
from rightpool.runtime.observe.pool_inventory import PoolInventory, take_inventory
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from tests.patience import PATIENCE, eventually

from .test_commands import ROOT, answer, api, rightpool, tenant

__all__ = ["api", "tenant"]  # fixtures

pytestmark = pytest.mark.cluster

IMAGE = "rightpool/example-training:0.1.0"
CPU = {"accelerator": "CPU", "chipsPerNode": 2, "resourceName": "rightpool.dev/cpu-chip"}
A100 = {
    "accelerator": "A100-SXM4-80GB",
    "chipsPerNode": 8,
    "resourceName": "nvidia.com/gpu",
    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
}


@pytest.fixture
def cluster(api: client.ApiClient, kubeconfig: Path) -> Iterator[ClusterClient]:
    found = ClusterClient.connect(str(kubeconfig))
    yield found
    found.close()


@pytest.fixture
def pool(cluster: ClusterClient) -> Iterator[str]:
    """The name of a pool that the test makes; it is deleted afterwards."""
    name = f"calibrated-{uuid.uuid4().hex[:8]}"
    yield name
    cluster.delete(ACCELERATOR_POOLS, name)


def declare(cluster: ClusterClient, name: str, spec: dict[str, Any]) -> None:
    cluster.apply(ACCELERATOR_POOLS, {"metadata": {"name": name}, "spec": spec}, manager="platform-team")


def inventory(cluster: ClusterClient, name: str) -> PoolInventory:
    stored = cluster.get(ACCELERATOR_POOLS, name)
    return take_inventory([stored], (), (), ChipUsage(cluster, interval=0.0), load_catalog())


def publish(cluster: ClusterClient, name: str) -> int:
    """One cycle of the operator's writes to the pool; how many there were."""
    store = Store()
    statuses = StatusPublisher(cluster, store, lambda event: None)
    return PoolPublisher(cluster, store, statuses).publish(inventory(cluster, name), time.time())


def conditions(cluster: ClusterClient, name: str) -> dict[str, tuple[str, str]]:
    status = cluster.get(ACCELERATOR_POOLS, name)["status"]
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


@pytest.fixture(scope="session")
def image() -> None:
    """An image with JAX on the node that runs real pods."""
    if not host.is_root() or deps.missing(root=True) or os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("real pods need root, the packages of `python -m devcluster deps` and the embedded cluster")
    quiet = Progress(quiet=True)
    folder = TEST.logs.parent / "images"
    built = recipes.build_all(("example-training",), folder, quiet)
    images.load(TEST, [one.archive for one in built.values()])


def test_a_real_pod_measures_and_the_operator_keeps_it(
    cluster: ClusterClient, kubeconfig: Path, namespace: str, pool: str, image: None
) -> None:
    restricted = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    cluster.request("PATCH", f"/api/v1/namespaces/{namespace}", body=restricted, content="application/merge-patch+json")
    declare(cluster, pool, {**CPU, "nodeSelector": {"kubernetes.io/hostname": "node-0"}})
    assert publish(cluster, pool) == 1
    assert conditions(cluster, pool)["Calibrated"] == ("Unknown", "NotMeasured")

    found = answer("calibrate", pool, "-n", namespace, "--chips", "1", "--image", IMAGE, kubeconfig=kubeconfig)
    measured = found["calibration"]
    assert (measured["reason"], measured["node"], measured["chips"]) == ("Measured", "node-0", 1)
    assert measured["teraflops"]["fp32"] > 0 and measured["memoryGigabytesPerSecond"] > 0
    assert cluster.list_all(JOBS, namespace) == [], "nothing is left behind"

    assert conditions(cluster, pool)["Calibrated"] == ("True", "Measured")
    publish(cluster, pool)
    assert publish(cluster, pool) == 0, "the two writers do not overwrite each other"
    stored = cluster.get(ACCELERATOR_POOLS, pool)["status"]
    assert stored["calibration"]["device"] == measured["device"]
    assert conditions(cluster, pool)["FiguresVerified"] == ("True", "Measured")
    shown = rightpool("pools", kubeconfig=kubeconfig).stdout
    (line,) = (line for line in shown.splitlines() if line.startswith(pool) and "declared" in line)
    assert f"measured {stored['calibration']['measuredAt'][:10]}" in line

    spec = {**CPU, "accelerator": "A10G-24GB", "nodeSelector": {"kubernetes.io/hostname": "node-0"}}
    declare(cluster, pool, spec)
    publish(cluster, pool)
    assert conditions(cluster, pool)["Calibrated"] == ("False", "CalibrationVoid")
    assert conditions(cluster, pool)["FiguresVerified"] == ("False", "OneSource")
    assert inventory(cluster, pool).inventory.pools[pool].accelerator.measured is None


def test_an_image_that_is_not_there_ends_it(
    cluster: ClusterClient, kubeconfig: Path, namespace: str, pool: str, image: None
) -> None:
    """A wrong name of an image ends the command at once."""
    declare(cluster, pool, {**CPU, "nodeSelector": {"kubernetes.io/hostname": "node-0"}})
    result = rightpool("calibrate", pool, "-n", namespace, "--image", "no/such:image", kubeconfig=kubeconfig)
    assert result.returncode == 1
    assert "choose another image by --image" in result.stderr
    assert "calibration" not in (cluster.get(ACCELERATOR_POOLS, pool).get("status") or {})
    assert cluster.list_all(JOBS, namespace) == []


def test_an_interrupt_leaves_nothing_behind(
    cluster: ClusterClient, kubeconfig: Path, namespace: str, pool: str
) -> None:
    """On a simulated node, where a pod runs for ever."""
    declare(cluster, pool, A100)
    process = subprocess.Popen(
        [sys.executable, "-m", "rightpool.cli.main", "calibrate", pool, "-n", namespace],
        env={**os.environ, "PYTHONPATH": str(ROOT / "operator"), "KUBECONFIG": str(kubeconfig)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("measuring on a100-"):
                break
        (pod,) = cluster.list_all(PODS, namespace)
        assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "8"}
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        process.wait()
    eventually(
        lambda: not cluster.list_all(JOBS, namespace) and not cluster.list_all(PODS, namespace),
        "the Job and its pod are gone",
    )


def test_each_missing_right_is_named_and_nothing_runs(
    cluster: ClusterClient, tenant: Path, namespace: str, pool: str
) -> None:
    declare(cluster, pool, A100)
    cluster.request(
        "PATCH",
        f"/apis/{GROUP}/{VERSION}/acceleratorpools/{pool}/status",
        body={"status": {"nodes": 4, "chips": {"total": 32, "free": 32}}},
        content="application/merge-patch+json",
    )
    result = rightpool("calibrate", pool, kubeconfig=tenant)
    assert result.returncode == 1
    assert result.stderr.startswith("rightpool calibrate: you are not allowed to create jobs (batch) in namespace ")
    for right in ("delete jobs (batch)", "list pods", "get pods/log", "patch acceleratorpools/status (rightpool.dev)"):
        assert right in result.stderr
    assert cluster.list_all(JOBS, namespace) == []


def test_the_schema_takes_what_is_measured_and_no_nonsense(cluster: ClusterClient, pool: str) -> None:
    """What the API server stores can be read again; a pod's numbers never reach it unchecked."""
    declare(cluster, pool, A100)
    body = {"metadata": {"name": pool}, "status": {"calibration": {"accelerator": "x", "chips": 0}}}
    with pytest.raises(Exception, match="chips"):
        cluster.apply(ACCELERATOR_POOLS, body, subresource="status", manager="rightpool-calibrate")
    assert json.dumps(cluster.get(ACCELERATOR_POOLS, pool).get("status")) == "null"
