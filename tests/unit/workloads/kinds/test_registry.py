"""The registry: one kind for each field of spec.workload, found by field, by resource and by a pod's controller."""

from __future__ import annotations

from rightpool.api.workload import Workload
from rightpool.cluster.resources import PODS
from rightpool.runtime.observe.watched import watched
from rightpool.workloads.kinds.registry import KINDS, child_resources, controls_pod, kind_at, kind_of
from tests.unit.workloads.samples import plain


def test_every_kind_of_workload_becomes_a_child() -> None:
    assert set(KINDS) == set(Workload.model_fields)
    assert {field: kind.field for field, kind in KINDS.items()} == {field: field for field in KINDS}
    assert kind_of(Workload.model_validate({"job": {"template": plain()}})) is KINDS["job"]


def test_a_resource_belongs_to_one_kind() -> None:
    assert len(set(child_resources())) == len(KINDS)
    assert [kind_at(resource) for resource in child_resources()] == list(KINDS.values())
    assert kind_at(PODS) is None
    assert set(child_resources()) < set(watched())


def test_a_pod_belongs_to_the_child_named_by_its_controller() -> None:
    def controller(version: str, kind: str, name: str) -> dict[str, str]:
        return {"apiVersion": version, "kind": kind, "name": name}

    assert controls_pod(controller("batch/v1", "Job", "bert-r1"), "bert-r1")
    assert controls_pod(controller("batch/v2", "Job", "bert-r1"), "bert-r1")
    assert not controls_pod(controller("batch/v1", "Job", "bert-r2"), "bert-r1")
    assert not controls_pod(controller("batch/v1", "CronJob", "bert-r1"), "bert-r1")
    assert not controls_pod(controller("batch.example/v1", "Job", "bert-r1"), "bert-r1")
    assert not controls_pod({}, "bert-r1")
