"""The part of a pod template that the schema knows.

A whole PodTemplateSpec would be half a megabyte of schema, more than client-side `kubectl apply` can carry. What our
rules read is declared, with bounds so that their cost is known; the rest is preserved as it is, and judged by the API
server when the child is created.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import WithJsonSchema

from rightpool.api.model import keyed_by
from rightpool.api.rules import Rule, validations

MAX_CONTAINERS: Final = 16
MAX_RESOURCES: Final = 32

# Names, or beginnings of names, of the extended resources that are chips. Network devices of the same vendors
# (nvidia.com/hostdev, rdma/…) are the user's to ask for, so a vendor's domain alone is not enough.
CHIP_RESOURCES: Final = (
    "nvidia.com/gpu",
    "nvidia.com/mig-",
    "amd.com/gpu",
    "google.com/tpu",
    "aws.amazon.com/neuron",
    "gpu.intel.com/",
    "habana.ai/gaudi",
    "rightpool.dev/",
)

_PRESERVE: Final = {"x-kubernetes-preserve-unknown-fields": True}
_IS_CHIP: Final = " || ".join(f"name.startsWith('{prefix}')" for prefix in CHIP_RESOURCES)


def _object(description: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties, **more, **_PRESERVE}


def _strings(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": {"type": "string"}}


def _amounts(verb: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": f"What the container {verb}, without chips.",
        "maxProperties": MAX_RESOURCES,
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        },
        **validations(
            Rule(
                f"!self.exists(name, {_IS_CHIP})",
                "must not ask for chips: remove the chip resource here and say how many with chipsPerReplica; chips "
                "are added where the job is placed",
                expression=f"'must not ask for chips: remove ' + self.filter(name, {_IS_CHIP})[0] + "
                "' here and say how many with chipsPerReplica; chips are added where the job is placed'",
            )
        ),
    }


_CONTAINER_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 63, "description": "Name of the container."}
_NODE_NAME: Final = {
    "type": "string",
    "description": "Not to be set: pods go where the job is placed.",
    "maxLength": 253,
    **validations(
        Rule(
            "self == ''",
            "must not be set, since it goes round the scheduler and the pools: remove it, and say "
            "which pools may be used with spec.placement.pools",
        )
    ),
}

_CLAIMS: Final = {
    "type": "array",
    "description": "Not to be set: chips are added where the job is placed.",
    "maxItems": MAX_RESOURCES,
    "items": {"type": "object", **_PRESERVE},
    **validations(
        Rule(
            "size(self) == 0",
            "must not be set, since the job's chips are asked for where it is placed, and a claim would take more: "
            "remove it, and say how many with chipsPerReplica",
        )
    ),
}

# Who the pods are does not depend on their chips, so that a variant can't make them somebody else.
_IDENTITY: Final = {
    "serviceAccountName": {"type": "string", "maxLength": 253, "description": "Not to be set here."},
    "serviceAccount": {"type": "string", "maxLength": 253, "description": "Not to be set here."},
    "automountServiceAccountToken": {"type": "boolean", "description": "Not to be set here."},
}
IDENTITY_FIELDS: Final = tuple(_IDENTITY)
NOT_IN_VARIANTS: Final = (
    "must not be set in a variant, since pods are the same account on all chips: set it in the template of "
    "spec.workload"
)


def _containers(description: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "array",
        "description": description,
        "maxItems": MAX_CONTAINERS,
        **keyed_by("name"),
        "items": _object(
            "A container, as in a pod.",
            {
                "name": _CONTAINER_NAME,
                "resources": _object(
                    "Resources other than chips.",
                    {"limits": _amounts("may use"), "requests": _amounts("is sure to get")},
                ),
                **more,
            },
            required=["name"],
        ),
    }


def _template(kind: str, restart: dict[str, Any], **of_containers: Any) -> dict[str, Any]:
    """kind: whose pods these are; of_containers: fields that rules read of their containers."""
    return _object(
        f"The pod template, as in a {kind}. It asks for no chips: they are added where the job is placed.",
        {
            "metadata": _object(
                "Labels and annotations of the pods.",
                {"labels": _strings("Labels of the pods."), "annotations": _strings("Annotations of the pods.")},
            ),
            "spec": _object(
                "The pod's spec, all of whose fields may be used.",
                {
                    "containers": _containers(
                        "The containers. If several, chipContainer names the one with chips.", **of_containers
                    ),
                    "initContainers": _containers("Containers that run before."),
                    "restartPolicy": restart,
                    "nodeSelector": _strings("Labels of nodes, beside those of the pool."),
                    "nodeName": _NODE_NAME,
                    "resourceClaims": _CLAIMS,
                    "serviceAccountName": {"type": "string", "description": "ServiceAccount of the pods."},
                },
                **validations(
                    Rule(
                        "has(self.containers) && size(self.containers) > 0",
                        "must hold at least one container: add the one that runs the program, with its name and image",
                        field=".containers",
                        reason="FieldValueRequired",
                    )
                ),
            ),
        },
        required=["spec"],
    )


_OF_JOBS: Final = {
    "type": "string",
    "description": "Never or OnFailure. Default: Never.",
    "maxLength": 16,
    **validations(
        Rule(
            "self in ['Never', 'OnFailure']",
            "must be Never or OnFailure, as for every Job: change it, or leave it out for Never",
        )
    ),
}
_OF_SERVERS: Final = {
    "type": "string",
    "description": "Always, as is the default.",
    "maxLength": 16,
    **validations(Rule("self == 'Always'", "must be Always, as for every Deployment: remove it")),
}
_PROBE: Final = _object("When it can answer, as in a pod.", {})

TEMPLATE_SCHEMA: Final = _template("Job", _OF_JOBS)
SERVER_TEMPLATE_SCHEMA: Final = _template("Deployment", _OF_SERVERS, readinessProbe=_PROBE)

_NAMED: Final = "self.template.spec.containers"
_HAS_CONTAINERS: Final = f"has({_NAMED})"

CHIP_CONTAINER_RULES: Final = (
    Rule(
        f"has(self.chipContainer) || !{_HAS_CONTAINERS} || size({_NAMED}) <= 1",
        "is needed because the template has several containers: name the one that gets the chips",
        field=".chipContainer",
        expression="'is needed because the template has several containers: name the one that gets the chips, "
        f"such as ' + {_NAMED}[0].name",
        reason="FieldValueRequired",
    ),
    Rule(
        f"!has(self.chipContainer) || !{_HAS_CONTAINERS} || size({_NAMED}) == 0 || "
        f"{_NAMED}.exists(c, c.name == self.chipContainer)",
        "must name a container of the template: write the name of one of them",
        field=".chipContainer",
        expression=f"'must name a container of the template: write ' + {_NAMED}[0].name + "
        f"(size({_NAMED}) > 1 ? ' or ' + {_NAMED}[1].name : '') + "
        f"(size({_NAMED}) > 2 ? ' or another' : '')",
    ),
)
"""Of a workload with the fields `template` and `chipContainer`."""

PodTemplate = Annotated[dict[str, Any], WithJsonSchema(TEMPLATE_SCHEMA)]
"""A full PodTemplateSpec, kept as it was written."""

ServerTemplate = Annotated[dict[str, Any], WithJsonSchema(SERVER_TEMPLATE_SCHEMA)]
"""The same of a server."""


_OVERLAY_SCHEMA: Final = _object(
    "What differs in the pod template.",
    {
        "spec": _object(
            "What differs in the pod's spec.",
            {
                "containers": {
                    "type": "array",
                    "description": "What differs in containers.",
                    "maxItems": MAX_CONTAINERS,
                    **keyed_by("name"),
                    "items": _object("What differs in a container.", {"name": _CONTAINER_NAME}, required=["name"]),
                },
                "nodeName": _NODE_NAME,
                "resourceClaims": _CLAIMS,
                **_IDENTITY,
            },
            **validations(*(Rule(f"!has(self.{name})", NOT_IN_VARIANTS, field=f".{name}") for name in IDENTITY_FIELDS)),
        )
    },
)

TemplateOverlay = Annotated[dict[str, Any], WithJsonSchema(_OVERLAY_SCHEMA)]
"""A part of a PodTemplateSpec that is laid over the whole, kept as it was written."""
