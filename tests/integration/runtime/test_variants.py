"""Jobs that have a variant of their template for TPUs: what runs where, and what a user sees of a mistake in one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.runtime.conftest import Start
from tests.integration.runtime.harness import Body, Fleet
from tests.integration.runtime.test_crash import events, leads
from tests.patience import eventually

pytestmark = pytest.mark.cluster


def for_tpu(**container: Any) -> list[Body]:
    trainer = {"name": "trainer", "image": "example.com/jax:1", "env": [{"name": "PJRT_DEVICE", "value": "TPU"}]}
    return [{"vendor": "Google", "template": {"spec": {"containers": [trainer | container]}}}]


def create(fleet: Fleet, name: str, variants: list[Body], **placement: Any) -> None:
    """A job of eight chips, which a slice has, too. No program runs that could be asked for a save."""
    size = {"elasticity": {"minChips": 8, "maxChips": 8}, "job": {"chipsPerReplica": 8}, "checkpoint": {"mode": "None"}}
    fleet.create(name, placement={"pools": {"deny": ["a10g"]}, "variants": variants} | placement, **size)


def trainer(fleet: Fleet, name: str) -> Body:
    """The container of the only pod."""
    (pod,) = fleet.pods(name)
    found: Body = next(c for c in pod["spec"]["containers"] if c["name"] == "trainer")
    return found


def test_a_job_crosses_to_tpus_by_its_variant_and_back_without_it(start: Start, fleet: Fleet) -> None:
    start()
    create(fleet, "crosses", for_tpu(), pools={"deny": ["a10g", "tpu-v5e"]})
    eventually(lambda: fleet.running("crosses", "crosses-r1"), "a start by the template as it is")
    assert trainer(fleet, "crosses")["image"] == "example.com/trainer:1"
    assert fleet.status("crosses")["placement"]["vendor"] == "NVIDIA"

    fleet.edit("crosses", lambda spec: spec["placement"]["pools"].update(deny=["a10g", "a100"]))
    eventually(lambda: fleet.running("crosses", "crosses-r2"), "a move to TPUs")
    container = trainer(fleet, "crosses")
    assert container["image"] == "example.com/jax:1" and container["resources"]["limits"]["google.com/tpu"] == "8"
    env = {variable["name"] for variable in container["env"]}
    assert {"PJRT_DEVICE", "JAX_PROCESS_ID", "RIGHTPOOL_CHIPS"} <= env
    placed = fleet.status("crosses")["placement"]
    assert (placed["vendor"], placed["templateVendor"]) == ("Google", "NVIDIA")

    fleet.edit("crosses", lambda spec: spec["workload"]["job"]["template"]["spec"].update(hostname="gpu"))
    fleet.edit("crosses", lambda spec: spec["placement"].update(variants=for_tpu(args=["--again"])))
    eventually(lambda: fleet.running("crosses", "crosses-r3"), "an update of the variant in use")
    assert trainer(fleet, "crosses")["args"] == ["--again"]

    fleet.edit("crosses", lambda spec: spec["placement"].update(pools={"deny": ["a10g", "tpu-v5e"]}))
    eventually(lambda: fleet.running("crosses", "crosses-r4"), "the way back")
    assert trainer(fleet, "crosses")["image"] == "example.com/trainer:1"


def test_an_edit_of_a_variant_that_is_not_in_use_restarts_nothing(start: Start, fleet: Fleet) -> None:
    leads(start, fleet)
    create(fleet, "stays", [])
    eventually(lambda: fleet.running("stays", "stays-r1"))
    (pod,) = fleet.pods("stays")
    fleet.edit("stays", lambda spec: spec["placement"].update(variants=for_tpu()))
    generation = fleet.job("stays")["metadata"]["generation"]
    eventually(lambda: fleet.status("stays").get("observedGeneration") == generation, "a look at the edit")
    assert [p["metadata"]["uid"] for p in fleet.pods("stays")] == [pod["metadata"]["uid"]]
    assert fleet.status("stays")["placement"]["revision"] == 1


def test_a_typo_in_a_variant_is_told_at_once_and_keeps_the_job_off_its_chips(start: Start, fleet: Fleet) -> None:
    operator = leads(start, fleet)
    create(fleet, "typo", for_tpu(comand=["python"]))

    def refused() -> bool:
        return bool(fleet.condition("typo", "Degraded").get("reason") == "InvalidVariant")

    operator.soon(refused, "a refusal to be seen")
    message = fleet.condition("typo", "Degraded")["message"]
    assert "spec.placement.variants[0].template" in message and 'comand"' in message
    eventually(lambda: fleet.running("typo", "typo-r1"), "a start where the template does")
    (event,) = eventually(lambda: [e for e in events(fleet, "typo") if e["reason"] == "InvalidVariant"], "an Event")
    assert event["type"] == "Warning"
    fleet.edit("typo", lambda spec: spec["placement"].update(variants=for_tpu()))
    eventually(lambda: not refused(), "the correction to be seen")
    assert fleet.status("typo")["placement"]["revision"] == 1
