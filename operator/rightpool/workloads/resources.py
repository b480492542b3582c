"""Resources of containers: chips, and the quality of service class."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rightpool.api.quantities import parse_count, parse_quantity
from rightpool.api.template import CHIP_RESOURCES
from rightpool.hardware.vendors.registry import VENDORS
from rightpool.workloads.template import InvalidTemplate, containers_of, init_containers_of, mapping_in, pod_spec

_NO_CHIPS: Final = "no container asks for chips, so nothing trains: name a workload whose pods request an accelerator"
_BY_CLAIMS: Final = "its resourceClaims are not read: have a container ask for chips by a resource, as nvidia.com/gpu"


def _is_chip(resource: str, pool_resource: str) -> bool:
    """Whether a resource is the pool's chips, or chips that users may not set in templates."""
    supported = any(vendor.resource_name == resource for vendor in VENDORS)
    return supported or resource == pool_resource or resource.startswith(CHIP_RESOURCES)


def refuse_chips(template: dict[str, Any], resource: str) -> None:
    """A template that requests chips itself is invalid: its number would contradict the placement's. So is one with
    claims: the container would get their devices beside its chips."""
    if pod_spec(template).get("resourceClaims"):
        raise InvalidTemplate(
            "template.spec.resourceClaims must not be set, since chips are added where the job is placed: remove it, "
            "and say how many with chipsPerReplica"
        )
    for other in [*containers_of(template), *init_containers_of(template)]:
        resources = other.get("resources", {})
        for kind in ("requests", "limits"):
            asked = resources.get(kind, {}) if isinstance(resources, dict) else None
            if not isinstance(asked, dict):
                raise InvalidTemplate(f"container {other['name']}: resources.{kind} must be an object")
            for name in asked:
                if _is_chip(name, resource):
                    raise InvalidTemplate(
                        f"container {other['name']} asks for {name} itself: remove it from resources.{kind}, "
                        "and say how many with chipsPerReplica"
                    )


def add_chips(container: dict[str, Any], resource: str, chips: int) -> None:
    """Set the chips of a container, as requests and limits, because extended resources can't be overcommitted."""
    resources = mapping_in(container, "resources", f"container {container['name']}")
    for kind in ("requests", "limits"):
        mapping_in(resources, kind, f"container {container['name']}: resources")[resource] = str(chips)


def chips_of(container: Mapping[str, Any]) -> dict[str, int]:
    """Chips that a container asks for, by the name of their resource."""
    resources = container.get("resources")
    kinds = [resources.get(kind) for kind in ("requests", "limits")] if isinstance(resources, dict) else []
    asked = {name: parse_count(amount) for kind in kinds if isinstance(kind, dict) for name, amount in kind.items()}
    return {name: count for name, count in asked.items() if count and _is_chip(name, "")}


def drop_chips(container: dict[str, Any]) -> None:
    """Have the container ask for no chips."""
    for name in chips_of(container):
        for asked in container["resources"].values():
            if isinstance(asked, dict):
                asked.pop(name, None)


def asks_for_chips(template: dict[str, Any]) -> bool:
    """Whether a container of this template asks for chips."""
    return any(map(chips_of, containers_of(template)))


def asks_for_none(templates: Iterable[dict[str, Any]]) -> InvalidTemplate:
    """That no container of these templates asks for chips, as the operator reads it."""
    claims = any(pod_spec(template).get("resourceClaims") for template in templates)
    return InvalidTemplate(_BY_CLAIMS if claims else _NO_CHIPS)


def take_chips(template: dict[str, Any]) -> tuple[str, int]:
    """Take the chips that the template asks for out of it. The container that asks, and how many it asks for."""
    asking = [(container, chips) for container in containers_of(template) if (chips := chips_of(container))]
    if not asking:
        raise asks_for_none([template])
    if len(asking) > 1:
        names = ", ".join(container["name"] for container, _ in asking)
        raise InvalidTemplate(f"several containers ask for chips ({names}): only one of them can be looked at")
    (container, chips), *_ = asking
    drop_chips(container)
    return container["name"], sum(chips.values())


def has_pod_level_resources(template: dict[str, Any]) -> bool:
    """Whether the pod has pod-level CPU or memory, which its containers share."""
    resources = pod_spec(template).get("resources")
    return isinstance(resources, dict) and any(resources.get(kind) for kind in ("requests", "limits"))


def is_guaranteed(template: dict[str, Any], ignoring: frozenset[str] = frozenset()) -> bool:
    """Whether the pod has the Guaranteed class: CPU and memory limits in all containers, and requests equal to them.

    ignoring: names of containers that don't count.
    """
    for container in [*containers_of(template), *init_containers_of(template)]:
        if container["name"] in ignoring:
            continue
        resources = container.get("resources")
        limits = resources.get("limits") if isinstance(resources, dict) else None
        requests = resources.get("requests", {}) if isinstance(resources, dict) else {}
        if not isinstance(limits, dict) or not isinstance(requests, dict):
            return False
        for resource in ("cpu", "memory"):
            limit = parse_quantity(limits.get(resource))
            if not limit:
                return False
            if resource in requests and parse_quantity(requests[resource]) != limit:
                return False
    return True
