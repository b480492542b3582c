"""A user's pod template: a private copy, and access to its fields that checks their types.

Templates are kept as the user wrote them, so anything may be missing, null or of the wrong type. Every builder goes
through these functions, and whatever can't be built from becomes one typed refusal that names the field.
"""

import json
from collections.abc import Mapping
from typing import Any


class InvalidTemplate(Exception):
    """The workload can't be built. The message names the field and the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def _as_plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def normalised(template: Mapping[str, Any]) -> dict[str, Any]:
    """A deep copy in plain JSON types. Null fields are dropped, because Kubernetes treats them as absent."""
    try:
        text = json.dumps(template, allow_nan=False, ensure_ascii=False, default=_as_plain)
        text.encode("utf-8")  # half a surrogate pair can't be sent to the API server
        copy = _without_nulls(json.loads(text))
    except RecursionError:
        raise InvalidTemplate("template is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise InvalidTemplate(f"template is not JSON: {error}") from None
    if not isinstance(copy, dict):
        raise InvalidTemplate("template must be an object with metadata and spec")
    return copy


def canonical(template: Mapping[str, Any]) -> str:
    """The canonical text of a template: sorted keys, no white space, no nulls."""
    try:
        return json.dumps(normalised(template), sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise InvalidTemplate("template is nested too deeply") from None


def mapping_in(parent: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    """The object at `key`, created if absent. `path` is that of the parent, for messages."""
    value = parent.setdefault(key, {})
    if not isinstance(value, dict):
        raise InvalidTemplate(f"{path}.{key} must be an object")
    return value


def objects_in(parent: dict[str, Any], key: str, path: str, name: str = "name") -> list[dict[str, Any]]:
    """The list of objects at `key`, created if absent. `name` is a text field that each must have; "" for none."""
    value = parent.setdefault(key, [])
    if not isinstance(value, list):
        raise InvalidTemplate(f"{path}.{key} must be a list")
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise InvalidTemplate(f"{path}.{key}[{index}] must be an object")
        if name and not (isinstance(item.get(name), str) and item[name]):
            raise InvalidTemplate(f"{path}.{key}[{index}].{name} must be a text that is not empty")
    return value


def pod_spec(template: dict[str, Any]) -> dict[str, Any]:
    """The template's `spec`."""
    return mapping_in(template, "spec", "template")


def containers_of(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The template's containers, at least one."""
    containers = objects_in(pod_spec(template), "containers", "template.spec")
    if not containers:
        raise InvalidTemplate("template.spec.containers must hold at least one container")
    return containers


def init_containers_of(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The template's init containers; no empty list is created."""
    spec = pod_spec(template)
    return objects_in(spec, "initContainers", "template.spec") if "initContainers" in spec else []


def chip_container_of(template: dict[str, Any], name: str | None) -> dict[str, Any]:
    """The container that gets the chips: the named one, else the only one."""
    containers = containers_of(template)
    if name is None:
        if len(containers) > 1:
            names = ", ".join(container["name"] for container in containers)
            raise InvalidTemplate(f"chipContainer is needed, because the template has several containers: {names}")
        return containers[0]
    for container in containers:
        if container["name"] == name:
            return container
    raise InvalidTemplate(f"chipContainer names {name!r}, and the template has no container of that name")


def set_default_env(container: dict[str, Any], variables: list[dict[str, Any]]) -> None:
    """Add variables before the user's, so that these may refer to them. Variables that the user sets are kept."""
    env = objects_in(container, "env", f"container {container['name']}")
    present = {variable["name"] for variable in env}
    container["env"] = [variable for variable in variables if variable["name"] not in present] + env
