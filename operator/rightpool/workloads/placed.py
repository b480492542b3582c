"""The pods of an object that its user has: what of their template can be changed, and what a placement makes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.hardware.pool import Pool
from rightpool.workloads.names import ANNOTATION_HELD
from rightpool.workloads.pods import place_pods
from rightpool.workloads.resources import add_chips, chips_of, drop_chips
from rightpool.workloads.template import pod_spec


def held_at(body: Mapping[str, Any]) -> Placement | None:
    """The placement at which the operator has stopped the object, by its note; None where there is none to be read."""
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    try:
        return Placement.from_dict(json.loads(annotations[ANNOTATION_HELD]))
    except (ValueError, TypeError, KeyError):
        return None


def chip_container_at(template: Mapping[str, Any]) -> int | None:
    """Which container asks for chips, by its place; of several the one with the most. None: none does."""
    found = [sum(chips_of(one).values()) for one in (template.get("spec") or {}).get("containers") or ()]
    return found.index(max(found)) if any(found) else None


def chips_in(template: Mapping[str, Any]) -> int:
    """Chips that each pod asks for."""
    index = chip_container_at(template)
    return 0 if index is None else sum(chips_of(template["spec"]["containers"][index]).values())


def template_settings(template: Mapping[str, Any], pointer: str, fields: Sequence[str]) -> dict[str, Any]:
    """Fields of the template's pods, as `Kind.settings` has them. pointer: to the template."""
    spec = template.get("spec") or {}
    return {f"{pointer}/spec/{field}": spec.get(field) for field in fields}


def template_shaped(pointer: str, value: Any) -> bool:
    """Whether a value of one of these fields has the type that Kubernetes has for it."""
    field = pointer.rpartition("/")[2]
    if field == "nodeSelector":
        return texts(value)
    if field == "tolerations":
        return isinstance(value, list) and all(texts(one, numbers=True) for one in value)
    if field == "resources":
        amounts = (value.get(part) or {} for part in ("requests", "limits")) if isinstance(value, dict) else (value,)
        return all(texts(one, numbers=True) for one in amounts)
    return isinstance(value, dict)


def texts(value: Any, *, numbers: bool = False) -> bool:
    """Whether it is an object of texts, or of numbers, too."""
    kinds = (str, int) if numbers else str
    return isinstance(value, dict) and all(isinstance(one, kinds) for one in value.values())


def place_template(template: dict[str, Any], ref: Revision, pool: Pool, *, affinity: bool) -> None:
    """Have the template's pods on the pool's nodes."""
    place_pods(template, pool, ref.placement, affinity=affinity)
    spec = pod_spec(template)
    for name in ("nodeSelector", "tolerations", "affinity"):
        if not spec.get(name):
            spec.pop(name, None)


def size_chips(template: dict[str, Any], ref: Revision, pool: Pool) -> None:
    """Have each pod ask for the placement's chips."""
    index = chip_container_at(template)
    if index is not None:
        container = template["spec"]["containers"][index]
        drop_chips(container)
        add_chips(container, pool.resource_name, ref.placement.chips_per_replica)
