"""A TrainJob that a ProfiledJob wraps: its own spec, whose pods are in the runtime that it names."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

from rightpool.api.model import ApiModel
from rightpool.api.placement import MAX_CHIPS_PER_REPLICA, MAX_REPLICAS
from rightpool.api.rules import not_set, validations

_PRESERVE: Final = {"x-kubernetes-preserve-unknown-fields": True}

# What our rules and the operator read. All else is judged by Trainer's own schema and webhook.
_SCHEMA: Final = {
    "type": "object",
    "description": "A TrainJob's spec, all of whose fields may be used but those that the operator sets itself.",
    "properties": {
        "runtimeRef": {
            "type": "object",
            "description": "The runtime that its pods come from, as in a TrainJob.",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of the runtime."},
                "kind": {
                    "type": "string",
                    "enum": ["ClusterTrainingRuntime", "TrainingRuntime"],
                    "description": "Default: ClusterTrainingRuntime.",
                },
            },
            "required": ["name"],
            **_PRESERVE,
        },
        "trainer": {
            "type": "object",
            "description": "The program, as in a TrainJob.",
            "properties": {
                "numNodes": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_REPLICAS,
                    "description": "Pods at the start. Default: 1.",
                },
            },
            **_PRESERVE,
        },
        "runtimePatches": {
            "type": "array",
            "description": "Not to be set: each Revision has a runtime of its own.",
            "maxItems": 16,
            "items": {"type": "object", **_PRESERVE},
        },
        "suspend": {"type": "boolean", "description": "Not to be set: spec.suspend of the ProfiledJob does it."},
        "managedBy": {"type": "string", "description": "Not to be set: spec.managedBy of the ProfiledJob does it."},
    },
    "required": ["runtimeRef"],
    **_PRESERVE,
    **validations(
        not_set("suspend", "spec.suspend of the ProfiledJob stops it after a save"),
        not_set("managedBy", "spec.managedBy of the ProfiledJob says who looks after it"),
        not_set("runtimePatches", "the pods of each Revision come from a runtime of their own, made of this one"),
    ),
}
TrainJobSpec = Annotated[dict[str, Any], WithJsonSchema(_SCHEMA)]
"""The spec of a TrainJob, kept as it was written."""

_TRAINER: Final = "self.workload.trainJob.template.trainer"
PODS_OF_TRAIN_JOB: Final = f"(has({_TRAINER}) && has({_TRAINER}.numNodes) ? {_TRAINER}.numNodes : 1)"
"""CEL of a ProfiledJob's spec: pods that the TrainJob asks for."""


class TrainJobWorkload(ApiModel):
    """A TrainJob of Kubeflow Trainer. The pods of its trainer are profiled, placed and resized; those of other steps of
    its runtime stay as they are."""

    template: TrainJobSpec
    """The spec of the TrainJob. It requests no chips: they are added where the job is placed."""

    chips_per_replica: int = Field(default=1, ge=1, le=MAX_CHIPS_PER_REPLICA)
    """Chips of each pod of the trainer at the start. What is in force afterwards is in status.placement."""

    @cached_property
    def replicas(self) -> int:
        """Pods of the trainer, at the start."""
        nodes = (self.template.get("trainer") or {}).get("numNodes")
        return nodes if isinstance(nodes, int) and nodes > 0 else 1
