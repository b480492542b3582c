"""A user edits what a job runs: a running operator says whether it is slower since, by simulated pods."""

from __future__ import annotations

import json

import pytest

from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet, use_image
from tests.integration.runtime.test_crash import events
from tests.integration.runtime.test_lifecycle import written_in
from tests.patience import eventually

pytestmark = pytest.mark.cluster

NAME = "edited"
PLAY = {"simulation.rightpool.dev/workload": "resnet50", "simulation.rightpool.dev/warm-up": "0s"}


def to_slower(spec: Body) -> None:
    """A new image, whose program does half of the samples a second."""
    use_image(spec, "2")
    about = spec["workload"]["job"]["template"]["metadata"]["annotations"]
    about["simulation.rightpool.dev/throughput"] = "0.5"


def remembers(fleet: Fleet, part: str) -> bool:
    return part in json.loads(fleet.status(NAME).get("workingMemory") or "{}")


def test_a_slower_image_is_a_regression_also_for_an_operator_that_is_started_anew(start: Start, fleet: Fleet) -> None:
    operator = start()
    container = {"name": "trainer", "image": "example.com/trainer:1"}
    fleet.create(NAME, template={"metadata": {"annotations": PLAY}, "spec": {"containers": [container]}})
    eventually(lambda: fleet.running(NAME, f"{NAME}-r1"), "it runs")
    eventually(lambda: remembers(fleet, "variation"), "windows enough are counted")
    fleet.edit(NAME, to_slower)
    eventually(lambda: fleet.running(NAME, f"{NAME}-r2") and remembers(fleet, "edit"), "the new image runs")
    operator.kill()
    operator = start("b")
    eventually(lambda: fleet.condition(NAME, "Efficient").get("reason") == "Regressed", "it is judged")
    efficient = fleet.condition(NAME, "Efficient")
    assert efficient["status"] == "False" and "with trainer:2 against trainer:1" in efficient["message"]
    found = eventually(lambda: [e for e in events(fleet, NAME) if e["reason"] == "Regressed"], "an Event says so")
    assert [(event["type"], event["message"]) for event in found] == [("Warning", efficient["message"])]
    eventually(lambda: 0.3 < operator.metric("rightpool_job_regression_ratio") < 0.7, "the metric has it")
    eventually(lambda: written_in(operator, 6) == 0, "it comes to rest")
