"""What the operator builds pods of: every text of a schema is followed into what each kind is built as.

Who may write a ProfiledJob and nothing that runs must not reach a pod. Admission compares `spec.workload`, the variants
and the adoption (tests/unit/chart/test_protection.py); here it is shown that nothing else of a spec comes to a pod, and
that the operator refuses for itself what would make pods somebody else.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pydantic import ValidationError

from rightpool.api.crd import definition
from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.resources import PROFILED_JOB, RESOURCES
from rightpool.api.revision import Revision
from rightpool.api.template import IDENTITY_FIELDS, NOT_IN_VARIANTS
from rightpool.api.variant import ChipVendor
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.moves.commands import DirectTraffic
from rightpool.runtime.act.children import Children
from rightpool.workloads.kinds.registry import KINDS, kind_of
from rightpool.workloads.template import InvalidTemplate
from tests.unit.workloads.kinds.test_contract import each_kind, recorded
from tests.unit.workloads.samples import GPU_POOL

Path = tuple[str, ...]

CANARY: Final = "/canary"
GUARDED: Final = ("spec.workload.", "spec.placement.variants.")
# Beside what is guarded, and where in the child alone it may stand. None of it says what runs or as whom.
BESIDE: Final = {
    "spec.queueName": {"metadata.labels.kueue.x-k8s.io/queue-name"},
    # The profiler looks for files there, by the user's own mounts.
    "spec.checkpoint.path": {"env"},
    "spec.checkpoint.files.[]": {"env"},
}


def texts(schema: dict[str, Any], path: Path) -> Iterator[Path]:
    """Where a user may write what he likes: texts without a list of values, and objects that the schema lets be."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        yield path
        return
    free = schema.get("type") == "string" and "enum" not in schema
    if free or schema.get("x-kubernetes-int-or-string"):
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from texts(inner, (*path, name))
    if "items" in schema:
        yield from texts(schema["items"], (*path, "[]"))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from texts(schema["additionalProperties"], (*path, "*"))


def all_texts(resource: Any) -> list[str]:
    (version,) = definition(resource)["spec"]["versions"]
    return [".".join(path) for path in texts(version["schema"]["openAPIV3Schema"]["properties"]["spec"], ("spec",))]


def with_text(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The spec with this at a path of the schema."""
    for part in reversed(path.split(".")[1:]):
        value = [value] if part == "[]" else {"canary" if part == "*" else part: value}
    return merged(spec, value)


def merged(base: Any, more: Any) -> Any:
    if isinstance(base, dict) and isinstance(more, dict):
        return base | {key: merged(base.get(key), value) for key, value in more.items()}
    return more


def manifests(spec: ProfiledJobSpec, original: Any, vendor: str | None = None) -> list[Any]:
    """All that the operator makes for a Revision."""
    job = Job(key=JobKey("research", "bert"), uid="uid", generation=1, created_at=0.0, spec=spec, workload_hash="h")
    ref = Revision(
        revision=1,
        placement=Placement("a10g", 2, 2),
        workload_hash="h",
        created_at=0.0,
        vendor=vendor,
        requested_chips=1,
        requested_replicas=2,
    )
    children = Children("profiler:1", b"k" * 16)
    child = children.build(job, ref, GPU_POOL, suspend=False, original=original)
    return [child, children.companion(job, ref, GPU_POOL, original), *children.fronts(job, DirectTraffic((1,), 1))]


def places(value: Any, path: Path = ()) -> Iterator[str]:
    """Where the canary found_at in a manifest; of variables only that it is one's value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if CANARY in key:
                yield ".".join((*path, "a key"))
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner, path)
    elif isinstance(value, str) and CANARY in value:
        yield "env" if path[-2:] == ("env", "value") else ".".join(path)


def spec_of(field: str) -> dict[str, Any]:
    return {"workload": {field: copy.deepcopy(recorded(field)["workload"])}}


@each_kind
def test_no_text_reaches_a_pod_that_admission_does_not_compare(field: str) -> None:
    found: dict[str, set[str]] = {}
    tried = 0
    for path in all_texts(PROFILED_JOB):
        if path.startswith((*GUARDED, "spec.workloadRef.")):  # beside a workload there is no reference
            continue
        try:
            spec = ProfiledJobSpec.model_validate(with_text(spec_of(field), path, CANARY))
        except ValidationError:
            continue  # a number, a time or an amount, which says nothing else
        tried += 1
        found_at = {one for body in manifests(spec, recorded(field).get("original")) for one in places(body)}
        if found_at:
            found[path] = found_at
    assert tried > len(BESIDE), "or nothing was looked at"
    assert {path: found_at - BESIDE.get(path, set()) for path, found_at in found.items()} == {
        path: set() for path in found
    }
    assert set(found) >= {"spec.checkpoint.path", "spec.checkpoint.files.[]"}, "canaries are found where they are"


@pytest.mark.parametrize("kind", [resource.kind for resource in RESOURCES])
def test_free_objects_are_of_what_is_compared_or_of_the_platforms_own_kinds(kind: str) -> None:
    resource = next(one for one in RESOURCES if one.kind == kind)
    preserved = [path for path in all_texts(resource) if path.endswith((".template", "rules.[]"))]
    if resource.namespaced:
        assert preserved and all(path.startswith(GUARDED) for path in preserved)
    else:
        assert not preserved, "who writes pools and the policy has the fleet, and no pod is made of free objects there"


def overlays() -> list[str]:
    """Templates, or parts of them, that do not say what runs themselves but are laid over it."""
    return [path for path in all_texts(PROFILED_JOB) if path.endswith("emplate") and ".workload." not in path]


# How the operator is had to build with each of them. Whoever adds a field to a schema adds its row.
_SPEC_WITH: Final = {
    "spec.placement.variants.[].template": lambda spec, part, vendor: (
        spec | {"placement": {"variants": [{"vendor": vendor, "template": part}]}}
    ),
}


def test_each_part_that_is_laid_over_a_template_is_tried_here() -> None:
    assert set(overlays()) == set(_SPEC_WITH)


@each_kind
@pytest.mark.parametrize("path", overlays())
@pytest.mark.parametrize("name", IDENTITY_FIELDS)
def test_the_operator_builds_no_pods_as_another_account(field: str, path: str, name: str) -> None:
    """By an object that no admission has seen, such as one of before an upgrade, or where admission is off."""
    vendor = ChipVendor.NVIDIA.value
    for value in ("admin", None, True):
        raw = _SPEC_WITH[path](spec_of(field), {"spec": {name: value}}, vendor)
        with pytest.raises(InvalidTemplate, match=rf"template\.spec\.{name} {NOT_IN_VARIANTS}"):
            manifests(ProfiledJobSpec.model_validate(raw), recorded(field).get("original"), vendor)


@each_kind
def test_what_is_laid_over_is_built_else(field: str) -> None:
    """The same object without an account is built, so that the refusal is of the account."""
    vendor = ChipVendor.NVIDIA.value
    path = "spec.placement.variants.[].template"
    raw = _SPEC_WITH[path](spec_of(field), {"metadata": {"annotations": {"note": CANARY}}}, vendor)
    spec = ProfiledJobSpec.model_validate(raw)
    if kind_of(spec.workload).companion is None:
        assert CANARY in json.dumps(manifests(spec, recorded(field).get("original"), vendor))


def test_every_kind_is_followed() -> None:
    (version,) = definition(PROFILED_JOB)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert set(spec["properties"]["workload"]["properties"]) == set(KINDS)
