"""A job's program is tried on another pool while the job runs on, by simulated pods and a running operator."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_crash import events
from tests.patience import eventually

pytestmark = pytest.mark.cluster

NAME, TRIAL = "tried", "tried-t1"
PLAY = {f"simulation.rightpool.dev/{key}": value for key, value in {"workload": "resnet50", "warm-up": "0s"}.items()}
VOLUME = {"name": "runs", "nfs": {"server": "files", "path": "/"}}
CONTAINER = {
    "name": "trainer",
    "image": "example.com/trainer:1",
    "volumeMounts": [{"name": "runs", "mountPath": "/runs"}],
}


def create(fleet: Fleet, **spec: Any) -> Body:
    template = {"metadata": {"annotations": PLAY}, "spec": {"containers": [CONTAINER], "volumes": [VOLUME]}}
    return fleet.create(
        NAME,
        template=template,
        job={"chipsPerReplica": 1},
        elasticity={"minChips": 1, "maxChips": 1},
        placement={"pools": {"allow": ["a100", "a10g"]}},
        adaptation={"mode": "Auto"},
        trial={"duration": "5s"},
        **spec,
    )


def there(fleet: Fleet, name: str) -> Body | None:
    try:
        return fleet.client.get(PROFILED_JOBS, name, fleet.namespace)
    except NotFound:
        return None


def test_a_program_is_tried_elsewhere_while_its_job_runs_on(start: Start, fleet: Fleet) -> None:
    start()
    create(fleet)
    eventually(lambda: fleet.running(NAME, f"{NAME}-r1"), "it runs")
    (pod,) = fleet.pods(NAME)
    found = eventually(lambda: there(fleet, TRIAL), "its trial is there")
    trial = fleet.status(NAME)["trial"]
    assert (trial["number"], trial["pool"]) == (1, "a10g")
    (owner,) = found["metadata"]["ownerReferences"]
    assert owner["name"] == NAME and owner["controller"]
    (tried,) = eventually(lambda: fleet.pods(TRIAL), "it has a pod")
    container = next(c for c in tried["spec"]["containers"] if c["name"] == "trainer")
    mount = next(mount for mount in container["volumeMounts"] if mount["name"] == "runs")
    assert mount["readOnly"], "what outlives it is read alone"
    assert [p["metadata"]["uid"] for p in fleet.pods(NAME)] == [pod["metadata"]["uid"]], "the job runs on"
    eventually(lambda: "trial" not in fleet.status(NAME), "it is over")
    eventually(lambda: there(fleet, TRIAL) is None, "nothing is left of it")
    notes = [event["message"] for event in events(fleet, NAME) if event["reason"] == "TrialOver"]
    assert any("times as fast as here" in note for note in notes), notes
    # An A10G costs 0.41 of an A100, and the program is 0.40 times as fast there.
    status = fleet.status(NAME)
    assert (status["placement"]["pool"], status["history"], status["trials"]) == ("a100", [], 1)
    assert there(fleet, f"{NAME}-t2") is None, "what is known is not tried again"
