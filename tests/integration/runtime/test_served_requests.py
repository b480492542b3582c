"""A status says of a server what was sent to it: real pods, their pages, a running operator and kubectl."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from demo.open_loop import OpenLoop
from devcluster import images, oci
from devcluster.kubectl import Kubectl
from devcluster.spec import TEST
from rightpool.cluster.resources import SERVICES
from tests.integration.runtime import bento_server
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_servers import NAME, answered_by, create
from tests.patience import eventually

__all__ = ["pool"]

pytestmark = pytest.mark.cluster

IMAGE = "docker.io/rightpool/bento-server:dev"
RATE = 8.0
# Of 20 requests one fails, and one takes so long.
PERIOD, LONG = 20, 0.3


@pytest.fixture
def image(pool: str, tmp_path: Path) -> str:
    """The program, in the container node. It is there where the pool is."""
    return load(tmp_path, IMAGE)


def load(folder: Path, name: str, **environment: str) -> str:
    """The program as an image of this name, in the container node."""
    archive = folder / "server.tar"
    layers = [images.base_rootfs(), oci.layer_from_files({"/server.py": Path(bento_server.__file__)})]
    config = oci.ImageConfig("65532:65532", environment, entrypoint=["/usr/bin/python3", "/server.py"])
    oci.write_image(archive, name, layers, config)
    images.load(TEST, [archive])
    return name


def template(image: str) -> Body:
    """Its probes are half as many as the requests."""
    probe = {"httpGet": {"path": "/readyz", "port": bento_server.REQUESTS}, "periodSeconds": 1}
    container = {
        "name": "server",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "readinessProbe": probe,
        "livenessProbe": {**probe, "failureThreshold": 600},
    }
    return {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}}


def page(pod: Body) -> str:
    url = f"http://{pod['status']['podIP']}:{bento_server.METRICS}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def wide(kubeconfig: Path, fleet: Fleet) -> str:
    return Kubectl(kubeconfig)("get", "profiledjobs", NAME, f"--namespace={fleet.namespace}", "--output=wide")


def test_a_status_says_what_was_sent(start: Start, fleet: Fleet, pool: str, image: str, kubeconfig: Path) -> None:
    start()
    create(
        fleet,
        chipsPerReplica=1,
        drain={"quiet": "0s", "timeout": "1s"},
        template=template(image),
        spec={"placement": {"pools": {"allow": [pool]}}, "profiling": {"mode": "Off"}},
    )
    eventually(lambda: answered_by(fleet, "r1", 2), "both replicas answer")
    address = fleet.client.get(SERVICES, NAME, fleet.namespace)["spec"]["clusterIP"]

    def url_of(number: int) -> str:
        seconds = LONG if number % PERIOD == 3 else 0.02
        code = 500 if number % PERIOD == 11 else 200
        return f"http://{address}:8000/predict?seconds={seconds}&code={code}"

    reported: dict[str, float] = {}

    def right() -> bool:
        reported.clear()
        shown = fleet.status(NAME).get("server") or {}
        reported.update({name: float(text) for name, text in shown.items() if name != "quality"})
        rate, errors = reported.get("requestsPerSecond"), reported.get("errorRatio")
        return rate == pytest.approx(RATE, rel=0.2) and errors == pytest.approx(1 / PERIOD, rel=0.3)

    eventually(lambda: answers(url_of(0)), "the node sends what comes to the Service to its pods")
    with OpenLoop(RATE, url_of) as traffic:
        eventually(right, lambda: f"{reported} where this was answered: {traffic.answered}")
        assert (reported["p99AtLeast"], reported["p99AtMost"]) == (0.25, 0.5)
        assert reported["meanSeconds"] == pytest.approx(0.02 + (LONG - 0.02) / PERIOD, rel=0.2)
        profiled = fleet.condition(NAME, "Profiled")
        assert profiled["reason"] == "RequestsFail"
        assert "% of " in profiled["message"] and " requests/s with an error" in profiled["message"]
        head, row = wide(kubeconfig, fleet).splitlines()
        assert float(row[head.index("REQUESTS/S") :].split()[0]) == pytest.approx(RATE, rel=0.25)
        assert row[head.index("P99") :].startswith("<=500 ms")
    assert 0 not in traffic.answered, "the Service answers each request"
    # Both replicas are asked, and their probes, which they count, are none of the requests.
    for pod in fleet.pods(NAME):
        text = page(pod)
        assert 'endpoint="/readyz"' in text
        assert 'endpoint="/predict"' in text
