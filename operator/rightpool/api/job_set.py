"""A JobSet that a ProfiledJob wraps: its own spec, and which of its roles trains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, WithJsonSchema, model_validator

from rightpool.api.model import ApiModel, keyed_by
from rightpool.api.placement import MAX_CHIPS_PER_REPLICA, MAX_REPLICAS
from rightpool.api.rules import Rule, not_set, validations
from rightpool.api.template import TEMPLATE_SCHEMA

MAX_ROLES: Final = 8

_PRESERVE: Final = {"x-kubernetes-preserve-unknown-fields": True}
_COUNT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_REPLICAS}
_ROLES: Final = "self.template.replicatedJobs"

# What our rules and the operator read. All else is judged by the JobSet API's own schema and webhook.
_JOB: Final = {
    "type": "object",
    "description": "The Job of the role, as in a JobSet.",
    "properties": {
        "spec": {
            "type": "object",
            "description": "Its spec, all of whose fields may be used.",
            "properties": {
                "parallelism": {**_COUNT, "description": "Pods of each Job. Default: 1."},
                "template": TEMPLATE_SCHEMA,
            },
            "required": ["template"],
            **_PRESERVE,
        }
    },
    "required": ["spec"],
    **_PRESERVE,
}
_ROLE: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 63, "description": "Name of the role."},
        "replicas": {**_COUNT, "description": "How many such Jobs there are. Default: 1."},
        "template": _JOB,
    },
    "required": ["name", "template"],
    **_PRESERVE,
}


_SCHEMA: Final = {
    "type": "object",
    "description": "A JobSet's spec, all of whose fields may be used but those that the operator sets itself.",
    "properties": {
        "replicatedJobs": {
            "type": "array",
            "description": "The roles, as in a JobSet.",
            "minItems": 1,
            "maxItems": MAX_ROLES,
            **keyed_by("name"),
            "items": _ROLE,
        },
        "network": {
            "type": "object",
            "description": "How pods find each other, as in a JobSet.",
            "properties": {
                "subdomain": {"type": "string", "description": "Not to be set."},
                "enableDNSHostnames": {"type": "boolean", "description": "True, as is the default."},
            },
            **_PRESERVE,
            **validations(
                not_set("subdomain", "the pods of each Revision are under their own"),
                Rule(
                    "!has(self.enableDNSHostnames) || self.enableDNSHostnames",
                    "must not be false, since the pods of the role that trains find the first by its name: remove it",
                    field=".enableDNSHostnames",
                ),
            ),
        },
        "suspend": {"type": "boolean", "description": "Not to be set: spec.suspend of the ProfiledJob does it."},
        "managedBy": {"type": "string", "description": "Not to be set: spec.managedBy of the ProfiledJob does it."},
    },
    "required": ["replicatedJobs"],
    **_PRESERVE,
    **validations(
        not_set("suspend", "spec.suspend of the ProfiledJob stops it after a save"),
        not_set("managedBy", "spec.managedBy of the ProfiledJob says who looks after it"),
    ),
}
JobSetSpec = Annotated[dict[str, Any], WithJsonSchema(_SCHEMA)]
"""The spec of a JobSet, kept as it was written."""

_TRAINS: Final = "!has(self.workload.jobSet.role) || r.name == self.workload.jobSet.role"
_PODS: Final = (
    "(has(r.replicas) ? r.replicas : 1) * (has(r.template.spec.parallelism) ? r.template.spec.parallelism : 1)"
)
PODS_OF_JOB_SET: Final = f"self.workload.jobSet.template.replicatedJobs.filter(r, {_TRAINS}).map(r, {_PODS}).sum()"
"""CEL of a ProfiledJob's spec: pods that the role asks for that trains."""


class JobSetWorkload(ApiModel):
    """A JobSet: Jobs of several roles, of which one trains. It is profiled, placed and resized; the pods of others stay
    as they are."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                f"has(self.role) || size({_ROLES}) <= 1",
                "is needed because the JobSet has several roles: name the one that trains",
                field=".role",
                reason="FieldValueRequired",
            ),
            Rule(
                f"!has(self.role) || {_ROLES}.exists(r, r.name == self.role)",
                "must be the name of one of template.replicatedJobs: write that of the role that trains",
                field=".role",
            ),
        )
    )

    template: JobSetSpec
    """The spec of the JobSet. Its pods request no chips: they are added to the role that trains, where the job is
    placed."""

    role: str | None = Field(default=None, max_length=63)
    """The entry of `template.replicatedJobs` that trains. Needed where there are several."""

    chips_per_replica: int = Field(default=1, ge=1, le=MAX_CHIPS_PER_REPLICA)
    """Chips of each pod of this role at the start. What is in force afterwards is in status.placement."""

    chip_container: str | None = Field(default=None, max_length=63)
    """The container that gets the chips. Needed when the pods of this role have more than one container."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.replicas > MAX_REPLICAS:
            raise ValueError(f"template: {self.replicas} pods are more than the {MAX_REPLICAS} that train at most")
        return self

    @cached_property
    def trained(self) -> Mapping[str, Any]:
        """The entry of the role that trains; empty where the template has none."""
        roles = self.template.get("replicatedJobs") or ()
        return next((role for role in roles if self.role is None or role.get("name") == self.role), {})

    @cached_property
    def replicas(self) -> int:
        """Pods of the role that trains, at the start."""
        return pods_of(self.trained)


def jobs_of(role: Mapping[str, Any]) -> int:
    """How many Jobs an entry of replicatedJobs asks for."""
    return _count(role.get("replicas"))


def pods_of(role: Mapping[str, Any]) -> int:
    """How many pods an entry of replicatedJobs asks for."""
    job = role.get("template") or {}
    return jobs_of(role) * _count((job.get("spec") or {}).get("parallelism"))


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1
