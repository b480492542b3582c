"""The image of XLA's own tool and its manifest, on a real node, in a namespace that keeps the restricted standard."""

from __future__ import annotations

import gzip
import json
import os
import urllib.request
from pathlib import Path

import pytest

from devcluster import deps, host, images, recipes
from devcluster.kubectl import Kubectl
from devcluster.progress import Progress
from devcluster.spec import TEST
from tests.patience import PATIENCE

from .test_commands import ROOT

pytestmark = pytest.mark.cluster

FIXTURES = ROOT / "tests" / "unit" / "profiler" / "fixtures"


@pytest.fixture(scope="module")
def image() -> None:
    """On the node that runs real pods."""
    if not host.is_root() or deps.missing(root=True) or os.environ.get("RIGHTPOOL_TEST_KUBECONFIG"):
        pytest.skip("real pods need root, the packages of `python -m devcluster deps` and the embedded cluster")
    built = recipes.build_all(("xprof",), TEST.logs.parent / "images", Progress(quiet=True))
    images.load(TEST, [one.archive for one in built.values()])


def test_it_reads_a_trace_that_is_copied_into_it(kubeconfig: Path, namespace: str, image: None, tmp_path: Path) -> None:
    kubectl = Kubectl(kubeconfig)
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("apply", "-n", namespace, "-f", str(ROOT / "examples" / "xprof" / "xprof.yaml"))
    kubectl("wait", "-n", namespace, "--for=condition=Ready", "pod/xprof", f"--timeout={PATIENCE:.0f}s")
    run = tmp_path / "bert" / "plugins" / "profile" / "first"
    run.mkdir(parents=True)
    (run / "rank-0.xplane.pb").write_bytes(gzip.decompress((FIXTURES / "gpu_h100.xplane.pb.gz").read_bytes()))
    kubectl("cp", str(tmp_path / "bert"), f"{namespace}/xprof:/traces/bert")

    command = ("xprof", "get_device_time_attribution", "/traces/bert")
    found = json.loads(kubectl("exec", "-n", namespace, "xprof", "--", *command))
    recorded = json.loads((FIXTURES / "xprof.json").read_text())["gpu_h100"]
    assert found["total_device_duration_ms"] == recorded["total_device_duration_ms"]

    address = kubectl.json("get", "pod", "xprof", "-n", namespace)["status"]["podIP"]
    page = urllib.request.Request(f"http://{address}:8791/data/plugin/profile/runs")
    with urllib.request.urlopen(page, timeout=PATIENCE) as answer:
        body = answer.read()
    plain = gzip.decompress(body) if answer.headers.get("Content-Encoding") == "gzip" else body
    assert json.loads(plain) == ["bert/first"]
