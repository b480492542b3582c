"""A server is tried on another pool: a real Triton gets sample requests from its profiler, and none from a client."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo import triton
from demo.open_loop import OpenLoop
from devcluster import images, recipes
from devcluster.progress import Progress
from devcluster.spec import TEST
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS, CONFIG_MAPS, SERVICES
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import DAY, SLOT, Demanded, DemandRecord
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts
from rightpool.reporting.demand_object import demand_object
from tests.integration.cli.test_commands import rightpool
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_crash import events
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import image as bento
from tests.integration.runtime.test_served_requests import template
from tests.integration.runtime.test_server_moves import SHARED_RATE, other, timed
from tests.integration.runtime.test_servers import NAME, SLICES, answered_by, create
from tests.patience import eventually

__all__ = ["bento", "other", "pool"]

pytestmark = pytest.mark.cluster

RATE = 16.0
TRIAL = f"{NAME}-t1"
INFER = "/v2/models/ranker/infer"
ROW = {"name": "x", "shape": [1, 64], "datatype": "FP32", "data": [n / 64 for n in range(64)]}
SAMPLE = json.dumps({"inputs": [ROW]})
ANSWERED = re.compile(r"^nv_inference_request_success\{\S* (\d+)", re.MULTILINE)


@pytest.fixture
def image(pool: str, tmp_path: Path) -> str:
    """The profiler's; Triton's is there, too."""
    if not (triton.LOCK.is_file() and pool):
        pytest.skip("no real pods")
    built = recipes.build_all(("profiler",), tmp_path, Progress(quiet=True))["profiler"]
    images.load(TEST, [built.archive, triton.build(tmp_path, Progress(quiet=True))])
    return f"{recipes.REGISTRY}rightpool/profiler@{built.digest}"


@pytest.fixture
def cheap(client: ClusterClient, other: str) -> Iterator[str]:
    body = client.get(ACCELERATOR_POOLS, other)
    body["spec"]["price"] = {"perChipHour": "0.01"}
    client.replace(ACCELERATOR_POOLS, body)
    yield other


def week(place: str) -> DemandRecord:
    """At a steady rate, of batches that took 2 ms and 1 ms more for each request."""
    record, last = DemandRecord(), round(time.time() / SLOT)
    record.fill(Demanded.REQUESTS, dict.fromkeys(range(last - 7 * DAY, last), RATE * SLOT))
    for load in (1.0, 2.0, 4.0) * 10:
        count = 1000.0 / load
        counters = {
            RequestCounter.REQUESTS: 1000.0,
            RequestCounter.BATCHED: 1000.0,
            RequestCounter.BATCHES: count,
            RequestCounter.TIMED_BATCHES: count,
            RequestCounter.BATCH_SECONDS: count * (0.002 + 0.001 * load),
        }
        window = ServedWindow(last * SLOT, SLOT, ServerCounts(counters, {}, {}), 1, True)
        record.loads.extend(window, place, "of before")
    return record


def serve(fleet: Fleet, pool: str, other: str, path: str, body: bytes | None, p99: str, **server: Any) -> str:
    """The address at which it answers."""
    create(
        fleet,
        chipsPerReplica=1,
        replicas={"min": 1},
        drain={"quiet": "0s", "timeout": "1s"},
        spec={
            "adaptation": {"mode": "Recommend"},
            "placement": {"pools": {"allow": [pool, other]}},
            "profiling": {"interval": "1s", "window": "5s"},
            "targets": {"latency": {"p99": p99}},
            "trial": {"duration": "1m"},
        },
        **server,
    )
    eventually(lambda: answered_by(fleet, "r1", 1), "it answers")
    address = fleet.client.get(SERVICES, NAME, fleet.namespace)["spec"]["clusterIP"]
    url = f"http://{address}:8000{path}"
    eventually(lambda: answers(url, body), "the node sends what comes to the Service to its pods")
    return url


def serve_triton(fleet: Fleet, pool: str, other: str) -> str:
    """The address at which it answers."""
    container = {
        "name": "server",
        "image": triton.IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--allow-grpc=false", "--exit-timeout-secs=1"],
        "readinessProbe": {"httpGet": {"path": "/v2/health/ready", "port": 8000}, "periodSeconds": 1},
    }
    fleet.client.create(
        CONFIG_MAPS, {"metadata": {"name": "samples", "namespace": fleet.namespace}, "data": {"one.json": SAMPLE}}
    )
    record = demand_object(fleet.namespace, JobKey(fleet.namespace, NAME), week(f"{pool}/1"), None)
    fleet.client.create(CONFIG_MAPS, record)
    sample = {"path": INFER, "bodyFrom": {"configMapKeyRef": {"name": "samples", "key": "one.json"}}}
    # By the template's own label somebody else's Service may look for its pods.
    template = {"metadata": {"labels": {"app": "ranker"}}, "spec": {"containers": [container]}}
    return serve(fleet, pool, other, INFER, SAMPLE.encode(), "1s", warmUp=sample, template=template)


def answers(url: str, body: bytes | None) -> bool:
    try:
        with urllib.request.urlopen(url, body, timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def answered(pod: Body) -> int:
    """Requests, by its own page."""
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8002/metrics", timeout=60) as answer:
        return sum(map(int, ANSWERED.findall(answer.read().decode())))


class Reached:
    """Pods that any Service of the namespace sends requests to, at any time."""

    def __init__(self, fleet: Fleet) -> None:
        self.pods: set[str] = set()
        self._fleet, self._stop = fleet, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            slices = self._fleet.client.list_all(SLICES, self._fleet.namespace)
            self.pods |= {one["targetRef"]["name"] for each in slices for one in each["endpoints"] or ()}

    def stop(self) -> set[str]:
        self._stop.set()
        self._thread.join()
        return self.pods


def test_what_its_batches_take_there_is_measured_and_no_client_gets_there(
    start: Start, fleet: Fleet, pool: str, cheap: str, image: str, kubeconfig: Path
) -> None:
    start(RIGHTPOOL_SIDECAR_IMAGE=image)
    url = serve_triton(fleet, pool, cheap)
    selector = {"metadata": {"name": "theirs", "namespace": fleet.namespace}}
    fleet.client.create(SERVICES, selector | {"spec": {"selector": {"app": "ranker"}, "ports": [{"port": 80}]}})
    (pod,) = fleet.pods(NAME)
    reached, before = Reached(fleet), answered(pod)
    with OpenLoop(RATE, lambda number: url, SAMPLE.encode()) as traffic:
        eventually(lambda: fleet.status(NAME).get("server", {}).get("needed"), "its week is known")
        ask = ("trial", NAME, "-n", fleet.namespace, "--pool", cheap, "--for", "30s", "--wait")
        shown = rightpool(*ask, kubeconfig=kubeconfig)
        assert shown.returncode == 0, shown.stderr + str(events(fleet, NAME))
        print(shown.stdout)
    assert f"{TRIAL} tries it on 1 chip of {cheap} for 30 s" in shown.stdout
    assert "times as fast as here" in shown.stdout
    assert set(traffic.answered) == {200}, traffic.answered
    assert answered(pod) - before == traffic.answered.total(), "each request of a client went to the server itself"
    assert reached.stop() == {pod["metadata"]["name"]}

    def explained() -> str:
        return rightpool("explain", NAME, "-n", fleet.namespace, kubeconfig=kubeconfig).stdout

    eventually(lambda: "measured there, in a trial" in explained(), lambda: explained())
    print(explained())


DIES = """
import os, runpy, sys
if "RIGHTPOOL_TRIAL" in os.environ:
    sys.exit("no such device")
runpy.run_path("/server.py", run_name="__main__")
"""


def test_one_that_dies_there_says_its_last_line_and_the_server_answers_on(
    start: Start, fleet: Fleet, pool: str, cheap: str, image: str, bento: str, kubeconfig: Path
) -> None:
    record = demand_object(fleet.namespace, JobKey(fleet.namespace, NAME), timed({f"{pool}/1": 0.01}), None)
    fleet.client.create(CONFIG_MAPS, record)
    start(RIGHTPOOL_SIDECAR_IMAGE=image)
    pods = template(bento)
    pods["spec"]["containers"][0]["command"] = ["/usr/bin/python3", "-c", DIES]
    path = "/predict?seconds=0.01"
    sample = {"method": "GET", "path": path, "requests": 5}
    url = serve(fleet, pool, cheap, path, None, "100ms", warmUp=sample, template=pods)
    with OpenLoop(SHARED_RATE, lambda number: url) as traffic:
        eventually(lambda: fleet.status(NAME).get("server", {}).get("needed"), "its week is known")
        ask = ("trial", NAME, "-n", fleet.namespace, "--pool", cheap, "--for", "30s", "--wait")
        shown = rightpool(*ask, kubeconfig=kubeconfig)
    assert shown.returncode == 1, shown.stdout
    assert f"nothing measured on 1 chip of {cheap}" in shown.stderr and "no such device" in shown.stderr, shown.stderr
    assert "TrialFailed" in {event["reason"] for event in events(fleet, NAME)}
    assert set(traffic.answered) == {200}, traffic.answered
    assert fleet.status(NAME)["placement"]["pool"] == pool
