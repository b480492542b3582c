"""Lays a variant over a pod template, as Kubernetes lays a strategic merge patch over an object.

https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch: objects are merged field by
field, null removes a field, lists of the table below are merged by the key of their entries, and all others, such as
`command` and `tolerations`, are replaced. `$patch: delete` in an entry of a list removes that entry, and in an object
all its fields; `$patch: replace` keeps nothing of the object that it stands in, and as an entry of its own nothing of
the list.

In one thing more is done than by a plain patch: of a volume, a resource claim and a variable no other source is left
than the one that the variant names, where Kubernetes would find two and refuse them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.template import IDENTITY_FIELDS, NOT_IN_VARIANTS
from rightpool.api.workload import Workload
from rightpool.workloads.kinds.registry import kind_of
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.template import InvalidTemplate, normalised

PATCH: Final = "$patch"
_DELETE: Final = "delete"
_REPLACE: Final = "replace"

# The merge keys of PodTemplateSpec, from the struct tags of k8s.io/api/core/v1/types.go, v0.36.3.
_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ports": "containerPort",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "schedulingGates": "name",
    "resourceClaims": "name",
}
_OF_ONE_SOURCE: Final = frozenset({"env", "volumes", "resourceClaims"})


def workload_on(spec: ProfiledJobSpec, vendor: str | None) -> Workload:
    """What runs on the chips of this vendor: the workload with the variant for them laid over the template of its
    scaled pods, where there is one. Raises InvalidTemplate, with the field."""
    for index, variant in enumerate(spec.placement.variants):
        if variant.vendor == vendor:
            kind, chosen = kind_of(spec.workload), spec.workload.chosen
            try:
                template = overlaid(scaled_of(kind.pod_sets(chosen)).template, variant.template)
                return spec.workload.with_chosen(kind.with_template(chosen, template))
            except InvalidTemplate as error:
                raise InvalidTemplate(f"spec.placement.variants[{index}].{error.message}") from None
    return spec.workload


def overlaid(template: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the template with the overlay laid over it; of an empty overlay the template itself, without nulls.

    Raises InvalidTemplate, with the field, where the overlay says what can't be laid over anything, and where it would
    make the pods another account: an object that no admission has seen gets no further than here.
    """
    patch = dict(overlay)
    spec = patch.get("spec")
    for name in IDENTITY_FIELDS:
        if isinstance(spec, Mapping) and name in spec:
            raise InvalidTemplate(f"template.spec.{name} {NOT_IN_VARIANTS}")
    base = normalised(template)
    try:
        return _merged(base, patch, "template")
    except RecursionError:
        raise InvalidTemplate("template is nested too deeply") from None


def _merged(base: Mapping[str, Any], patch: Mapping[str, Any], path: str) -> dict[str, Any]:
    """`patch` laid over an object. Neither is changed; nulls of the patch are in no result."""
    directive = _directive(patch, path)
    if directive == _DELETE:
        return {}
    result = dict(base) if directive is None else {}
    for name, value in patch.items():
        where = f"{path}.{name}"
        if name == PATCH:
            continue
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            under = result.get(name)
            result[name] = _merged(under if isinstance(under, Mapping) else {}, value, where)
        elif isinstance(value, list) and name in _KEYS:
            under = result.get(name)
            result[name] = _merged_list(under if isinstance(under, list) else [], value, name, where)
        else:
            result[name] = _plain(value)
    return result


def _merged_list(base: list[Any], patch: list[Any], name: str, path: str) -> list[Any]:
    """A list that is merged by the key of its entries: what is new comes last, in the order of the patch."""
    key = _KEYS[name]
    replaced = any(entry == {PATCH: _REPLACE} for entry in patch)
    result = [] if replaced else list(base)
    for index, entry in enumerate(patch):
        where = f"{path}[{index}]"
        if not isinstance(entry, Mapping):
            raise InvalidTemplate(f"{where} must be an object")
        if entry == {PATCH: _REPLACE}:
            continue
        if entry.get(key) is None:
            raise InvalidTemplate(f"{where}.{key} is needed: it says which entry of {name} is meant")
        place = next((at for at, under in enumerate(result) if _keyed(under, key) == entry[key]), None)
        if _directive(entry, where) == _DELETE:
            result = [under for under in result if _keyed(under, key) != entry[key]]
        elif place is None:
            result.append(_merged({}, entry, where))
        else:
            under = result[place]
            if name in _OF_ONE_SOURCE and _names_source(entry, key):
                under = {field: value for field, value in under.items() if field in entry}
            result[place] = _merged(under, entry, where)
    return result


def _names_source(entry: Mapping[str, Any], key: str) -> bool:
    return any(value is not None for field, value in entry.items() if field not in (key, PATCH))


def _keyed(entry: Any, key: str) -> Any:
    return entry.get(key) if isinstance(entry, Mapping) else None


def _directive(patch: Mapping[str, Any], path: str) -> str | None:
    directive = patch.get(PATCH)
    if directive not in (None, _DELETE, _REPLACE):
        raise InvalidTemplate(f"{path}.{PATCH} must be {_DELETE} or {_REPLACE}, and is {directive!r}")
    return None if directive is None else str(directive)


def _plain(value: Any) -> Any:
    """A copy of what is taken over whole, without nulls."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
