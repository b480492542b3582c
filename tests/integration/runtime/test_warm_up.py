"""A replica that is slow at first gets requests of its profiler before any of users': real pods, real kubelet."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.open_loop import OpenLoop
from devcluster import images, oci, recipes
from devcluster.progress import Progress
from devcluster.spec import TEST
from rightpool.cluster.resources import CONFIG_MAPS, SERVICES
from tests.integration.runtime import cold_server
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import answers
from tests.integration.runtime.test_servers import NAME, answered_by, create, deployment
from tests.patience import eventually

__all__ = ["pool"]

pytestmark = pytest.mark.cluster

IMAGE = "docker.io/rightpool/cold-server:dev"
RATE = 20.0


@pytest.fixture
def image(pool: str, tmp_path: Path) -> str:
    """The program, in the container node."""
    archive = tmp_path / "server.tar"
    layers = [images.base_rootfs(), oci.layer_from_files({"/server.py": Path(cold_server.__file__)})]
    config = oci.ImageConfig(user="65532:65532", entrypoint=["/usr/bin/python3", "/server.py"])
    oci.write_image(archive, IMAGE, layers, config)
    images.load(TEST, [archive])
    return IMAGE


@pytest.fixture
def profiler(pool: str, tmp_path: Path) -> str:
    """Its image, in the container node."""
    built = recipes.build_all(("profiler",), tmp_path, Progress(quiet=True))["profiler"]
    images.load(TEST, [built.archive])
    return f"{recipes.REGISTRY}rightpool/profiler@{built.digest}"


def template(image: str, **more: str) -> Body:
    probe = {"httpGet": {"path": "/ready", "port": cold_server.PORT}, "periodSeconds": 1}
    container = {"name": "server", "image": image, "imagePullPolicy": "IfNotPresent", "readinessProbe": probe}
    env = [{"name": name, "value": value} for name, value in more.items()]
    return {"spec": {"containers": [{**container, "env": env}], "terminationGracePeriodSeconds": 1}}


def warmed(fleet: Fleet, pool: str, image: str) -> None:
    """A server of one replica, and the body of what warms it up."""
    about = {"name": "bodies", "namespace": fleet.namespace}
    fleet.client.create(CONFIG_MAPS, {"metadata": about, "data": {"one.json": cold_server.BODY.decode()}})
    create(
        fleet,
        chipsPerReplica=1,
        replicas={"min": 1},
        drain={"quiet": "2s", "timeout": "1s"},
        template=template(image),
        warmUp={"path": "/infer", "bodyFrom": {"configMapKeyRef": {"name": "bodies", "key": "one.json"}}},
        spec={"placement": {"pools": {"allow": [pool]}}},
    )


def test_no_user_meets_a_cold_replica(start: Start, fleet: Fleet, pool: str, image: str, profiler: str) -> None:
    start(RIGHTPOOL_SIDECAR_IMAGE=profiler)
    warmed(fleet, pool, image)
    eventually(lambda: answered_by(fleet, "r1", 1), lambda: str(fleet.condition(NAME, "Placed")))
    url = f"http://{fleet.client.get(SERVICES, NAME, fleet.namespace)['spec']['clusterIP']}:8000/predict"
    eventually(lambda: answers(url), "the node sends what comes to the Service to its pods")
    with OpenLoop(RATE, lambda number: url) as traffic:
        fleet.edit(NAME, lambda spec: spec["workload"]["server"].update(template=template(image, EDITED="1")))
        eventually(lambda: deployment(fleet, f"{NAME}-r1") is None, "what was left is ended")
        fleet.edit(NAME, lambda spec: spec["workload"]["server"].update(replicas={"min": 2}))
        eventually(lambda: answered_by(fleet, "r2", 2), "another replica answers")
        # It ignores SIGTERM: what is left ends all the same.
        eventually(lambda: fleet.revisions_alive(NAME) == {"2"}, "its pods end with their grace period")
    assert set(traffic.answered) == {200}, traffic.answered
