"""A LeaderWorkerSet that a ProfiledJob wraps: its own spec, all of whose pods get chips."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Final, Self

from pydantic import Field, WithJsonSchema, model_validator

from rightpool.api.model import ApiModel
from rightpool.api.placement import MAX_CHIPS_PER_REPLICA, MAX_REPLICAS

_PRESERVE: Final = {"x-kubernetes-preserve-unknown-fields": True}
_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_REPLICAS}

# What our rules and the operator read. All else is judged by the LeaderWorkerSet API's own schema and webhook.
_SCHEMA: Final = {
    "type": "object",
    "description": "A LeaderWorkerSet's spec, all of whose fields may be used.",
    "properties": {
        "replicas": {**_COUNT, "description": "How many groups there are. They stay as many. Default: 1."},
        "leaderWorkerTemplate": {
            "type": "object",
            "description": "The pods of a group, as in a LeaderWorkerSet.",
            "properties": {
                "size": {**_COUNT, "description": "Pods of each group, with its leader, at the start. Default: 1."},
            },
            **_PRESERVE,
        },
    },
    "required": ["leaderWorkerTemplate"],
    **_PRESERVE,
}
LeaderWorkerSetSpec = Annotated[dict[str, Any], WithJsonSchema(_SCHEMA)]
"""The spec of a LeaderWorkerSet, kept as it was written."""

_SPEC: Final = "self.workload.leaderWorkerSet.template"
_SIZE: Final = f"{_SPEC}.leaderWorkerTemplate.size"
PODS_OF_LEADER_WORKER_SET: Final = f"(has({_SPEC}.replicas) ? {_SPEC}.replicas : 1) * (has({_SIZE}) ? {_SIZE} : 1)"
"""CEL of a ProfiledJob's spec: pods that the LeaderWorkerSet asks for."""


class LeaderWorkerSetWorkload(ApiModel):
    """A LeaderWorkerSet: groups of pods, each of which is a leader and its workers. All of them are profiled and
    placed. A resize changes how many pods each group has, and the groups stay as many."""

    template: LeaderWorkerSetSpec
    """The spec of the LeaderWorkerSet. Its pods request no chips: they are added where the job is placed."""

    chips_per_replica: int = Field(default=1, ge=1, le=MAX_CHIPS_PER_REPLICA)
    """Chips of each pod at the start. What is in force afterwards is in status.placement."""

    chip_container: str | None = Field(default=None, max_length=63)
    """The container that gets the chips, of leaders and workers alike. Needed when their pods have more than one
    container."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.replicas > MAX_REPLICAS:
            raise ValueError(f"template: {self.replicas} pods are more than the {MAX_REPLICAS} that train at most")
        return self

    @cached_property
    def groups(self) -> int:
        """How many groups there are."""
        return count_of(self.template.get("replicas"))

    @cached_property
    def replicas(self) -> int:
        """Pods of all groups, at the start."""
        return self.groups * count_of((self.template.get("leaderWorkerTemplate") or {}).get("size"))


def count_of(value: object) -> int:
    """A number of groups, or of pods in one, as Kubernetes reads it: at least 1."""
    return value if isinstance(value, int) and value > 0 else 1
