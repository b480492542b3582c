"""Valid objects, and changes of them.

`change` maps dotted paths to values; a value of ABSENT removes the field. The base objects are admitted as they are.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Final

ABSENT: Final = object()

Object = dict[str, Any]

JOB: Final[Object] = {
    "apiVersion": "rightpool.dev/v1alpha1",
    "kind": "ProfiledJob",
    "metadata": {"name": "bert"},
    "spec": {
        "workload": {
            "job": {
                "chipsPerReplica": 4,
                "replicas": 2,
                "template": {"spec": {"containers": [{"name": "trainer", "image": "example/train"}]}},
            }
        }
    },
}
REFERENCE: Final = {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}
POOL: Final[Object] = {
    "apiVersion": "rightpool.dev/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "admission-test"},
    "spec": {"accelerator": "A10G-24GB", "chipsPerNode": 4, "resourceName": "nvidia.com/gpu"},
}
POLICY: Final[Object] = {
    "apiVersion": "rightpool.dev/v1alpha1",
    "kind": "PlacementPolicy",
    "metadata": {"name": "default"},
    "spec": {},
}


def changed(base: Object, change: Object) -> Object:
    """A copy of the base with the change."""
    result = copy.deepcopy(base)
    for path, value in change.items():
        *parents, last = path.split(".")
        node = result
        for name in parents:
            node = node.setdefault(name, {})
        if value is ABSENT:
            node.pop(last, None)
        else:
            node[last] = value
    return result


def containers(*items: Object) -> Object:
    return {"spec": {"containers": list(items)}}


def asking(kind: str, resource: str) -> Object:
    """A template whose container requests a resource."""
    return containers({"name": "trainer", "image": "x", "resources": {kind: {resource: 1}}})


@dataclass(frozen=True)
class Case:
    """A rule, a change that it rejects, and the expected answer."""

    id: str
    base: Object
    change: Object
    field: str
    message: str
