"""What containers ask for: chips, and the quality of service that follows from the rest."""

import re
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Final

from rightpool.api.template import CHIP_RESOURCES
from rightpool.workloads.template import InvalidTemplate, containers_of, init_containers_of, mapping_in, pod_spec

_QUANTITY: Final = re.compile(r"([+-]?[0-9.]{1,40})(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,3})?")
_SCALE: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def quantity(value: object) -> Decimal | None:
    """A Kubernetes quantity ("500m", "14Gi", 2) as a number; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number, unit = match.groups()
    with localcontext() as context:
        context.prec = 60
        try:
            if unit and unit[0] in "eE" and len(unit) > 1:
                return Decimal(number + unit)
            return Decimal(number) * _SCALE.get(unit or "", Decimal(1))
        except InvalidOperation:
            return None


def _is_chip(resource: str, pool_resource: str) -> bool:
    return resource == pool_resource or resource.startswith(CHIP_RESOURCES)


def add_chips(template: dict[str, Any], container: dict[str, Any], resource: str, chips: int) -> None:
    """Gives a container its chips, in requests and limits alike: extended resources can't be overcommitted.

    A template that asks for chips itself is refused: its number would contradict the placement's.
    """
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
                        "and say how many with workload.job.chipsPerReplica"
                    )
    resources = mapping_in(container, "resources", f"container {container['name']}")
    for kind in ("requests", "limits"):
        mapping_in(resources, kind, f"container {container['name']}: resources")[resource] = str(chips)


def has_pod_level_resources(template: dict[str, Any]) -> bool:
    """The pod as a whole asks for CPU or memory, and its containers share that."""
    resources = pod_spec(template).get("resources")
    return isinstance(resources, dict) and any(resources.get(kind) for kind in ("requests", "limits"))


def is_guaranteed(template: dict[str, Any], ignoring: frozenset[str] = frozenset()) -> bool:
    """Kubernetes would give the pod the Guaranteed class: CPU and memory limits everywhere, and requests equal to them.

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
            limit = quantity(limits.get(resource))
            if not limit:
                return False
            if resource in requests and quantity(requests[resource]) != limit:
                return False
    return True
