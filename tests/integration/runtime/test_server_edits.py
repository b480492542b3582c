"""A user edits the image of a server: a running operator says whether it is slower since, or fails, by real pods."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.open_loop import OpenLoop
from rightpool.cluster.resources import SERVICES
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_crash import events
from tests.integration.runtime.test_real_failures import pool
from tests.integration.runtime.test_served_requests import answers, image, load, template
from tests.integration.runtime.test_servers import NAME, answered_by, create, deployment
from tests.patience import eventually

__all__ = ["image", "pool"]

pytestmark = pytest.mark.cluster

RATE = 8.0
SLOWER, FAILING = "docker.io/rightpool/bento-server:slower", "docker.io/rightpool/bento-server:failing"


def memory(fleet: Fleet) -> Body:
    return json.loads(fleet.status(NAME).get("workingMemory") or "{}")


def edit(fleet: Fleet, image: str) -> None:
    fleet.edit(NAME, lambda spec: spec["workload"]["server"].update(template=template(image)))


def judged(fleet: Fleet, image: str) -> str:
    """The message of the condition and the Event, once the edit to this image is judged."""

    def message() -> str:
        found = fleet.condition(NAME, "Efficient")
        there = found.get("reason") == "Regressed" and f"with {shown(image)} against" in found["message"]
        return found["message"] if there else ""

    text = eventually(message, lambda: f"{fleet.condition(NAME, 'Efficient')} {memory(fleet).get('edit')}")
    found = eventually(lambda: [e for e in events(fleet, NAME) if e["message"] == text], "an Event says so")
    assert [(event["type"], event["reason"]) for event in found] == [("Warning", "Regressed")]
    return text


def shown(image: str) -> str:
    """As messages name it."""
    return image.removeprefix("docker.io/rightpool/")


def test_an_image_that_is_slower_or_fails_is_a_regression_whoever_leads(
    start: Start, fleet: Fleet, pool: str, image: str, tmp_path: Path
) -> None:
    load(tmp_path, SLOWER, TIMES="1.5")
    load(tmp_path, FAILING, TIMES="1.5", FAILS_EACH="10")
    operator = start()
    create(
        fleet,
        chipsPerReplica=1,
        replicas={"min": 1},
        drain={"quiet": "0s", "timeout": "1s"},
        template=template(image),
        spec={
            "placement": {"pools": {"allow": [pool]}},
            "profiling": {"mode": "Off", "interval": "1s", "window": "3s"},
        },
    )
    eventually(lambda: answered_by(fleet, "r1", 1), "it answers")
    address = fleet.client.get(SERVICES, NAME, fleet.namespace)["spec"]["clusterIP"]
    url = f"http://{address}:8000/predict?seconds=0.02"
    eventually(lambda: answers(url), "the node sends what comes to the Service to its pods")
    with OpenLoop(RATE, lambda number: url) as traffic:
        eventually(lambda: traffic.answered[200] >= 10 * 15 * RATE, "windows enough are counted")
        edit(fleet, SLOWER)
        eventually(lambda: deployment(fleet, f"{NAME}-r2"), "it starts", longest=0.1)
        operator.kill()
        operator = start("b")
        eventually(lambda: "edit" in memory(fleet), "the new image answers")
        operator.kill()
        operator = start("c")
        text = judged(fleet, SLOWER)
        assert text.startswith("seconds of a batch +50.0% (") and text.endswith(f"against {shown(image)}"), text
        eventually(lambda: 0.6 < operator.metric("rightpool_job_regression_ratio") < 0.72, "the metric has it")
        assert operator.metric("rightpool_job_regressed") == 1.0
        assert set(traffic.answered) == {200}, traffic.answered
        edit(fleet, FAILING)
        text = judged(fleet, FAILING)
        assert "% of requests fail, 0% did, with" in text and text.endswith(f"against {shown(SLOWER)}"), text
        eventually(lambda: not operator.exports("rightpool_job_regression_ratio{"), "of failures there is no ratio")
        assert operator.metric("rightpool_job_regressed") == 1.0, "and the alert fires"
    assert set(traffic.answered) == {200, 500}, traffic.answered
