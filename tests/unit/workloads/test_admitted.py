"""What new pods of an adopted object get, as a PodTemplate."""

from __future__ import annotations

from typing import Any

import pytest

from rightpool.api.placement import Placement
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from rightpool.workloads.admitted import ANNOTATION_PODS, pod_additions
from rightpool.workloads.injection import inject
from rightpool.workloads.pod_set import PodSet
from tests.unit.workloads.samples import INJECTION, OWNER, plain

PODS = "batch.kubernetes.io/controller-uid=u"
TWO, THREE = Placement("a", 8, 2), Placement("a", 12, 3)


def additions(template: dict[str, Any], at: Placement = TWO) -> dict[str, Any] | None:
    return pod_additions(OWNER, PODS, PodSet("worker", template, "trainer", 2, 4), 3, at, TWO, INJECTION)


def admitted(template: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """As the chart's policy adds it, which tests/integration/kinds has a real API server do."""
    spec, new = template["spec"], given["template"]["spec"]
    [container] = [one for one in spec["containers"] if one["name"] == new["containers"][0]["name"]]
    env, names = container.get("env", []), {one["name"]: one for one in new["containers"][0]["env"]}
    kept = [names.pop(one["name"], one) for one in env]
    container["env"] = [*names.values(), *kept]
    container["volumeMounts"] = container.get("volumeMounts", []) + new["containers"][0]["volumeMounts"]
    spec["volumes"] = spec.get("volumes", []) + new["volumes"]
    spec["initContainers"] = new["initContainers"] + spec.get("initContainers", [])
    return template


@pytest.mark.parametrize("env", [[], [{"name": "HOME", "value": "/h"}, {"name": "PYTHONPATH", "value": "/app"}]])
def test_a_pod_gets_what_a_wrapped_one_has(env: list[dict[str, str]]) -> None:
    template = plain(env=env)
    template["spec"] |= {"initContainers": [{"name": "fetch"}], "securityContext": {}}
    given = additions(template)
    assert given is not None
    assert admitted(template, given) == inject(template, "trainer", INJECTION, 4)
    about = given["metadata"]
    assert about["annotations"] == {ANNOTATION_PODS: PODS} and about["ownerReferences"] == [OWNER.reference]
    assert given["template"]["metadata"]["labels"] == {LABEL_JOB: OWNER.name, LABEL_REVISION: "3"}


def test_where_a_profiler_can_not_be_there_is_nothing() -> None:
    template = plain()
    template["spec"]["hostNetwork"] = True
    assert additions(template) is None


@pytest.mark.parametrize(
    ("name", "value", "resized"),
    [
        ("PET_NNODES", "2", "3"),
        ("PET_NNODES", "1:4", None),
        ("PET_NPROC_PER_NODE", "4", "4"),
        ("PET_NPROC_PER_NODE", "gpu", None),
        ("WORLD_SIZE", "8", "12"),
        ("WORLD_SIZE", "2", "3"),
        ("JAX_NUM_PROCESSES", "2", "3"),
        ("ACCELERATE_NUM_PROCESSES", "8", "12"),
        ("NODES", "2", None),
    ],
)
def test_a_literal_that_says_the_size_follows_it(name: str, value: str, resized: str | None) -> None:
    template = plain(env=[{"name": name, "value": value}])
    given = additions(template, THREE)
    assert given is not None
    found = {one["name"]: one.get("value") for one in given["template"]["spec"]["containers"][0]["env"]}
    assert found.get(name) == resized
    back = additions(template)
    assert back is not None and name not in {one["name"] for one in back["template"]["spec"]["containers"][0]["env"]}
