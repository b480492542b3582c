"""The registry of the kinds of children. Nothing outside this package names a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.api.workload import Workload
from rightpool.workloads.kinds.job import JOB
from rightpool.workloads.kinds.job_set import JOB_SET
from rightpool.workloads.kinds.kind import Kind, adoption_of
from rightpool.workloads.kinds.leader_worker_set import LEADER_WORKER_SET
from rightpool.workloads.kinds.server import SERVER
from rightpool.workloads.kinds.train_job import TRAIN_JOB
from rightpool.workloads.names import child_name
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.template import InvalidTemplate

KINDS: Final[dict[str, Kind[Any]]] = {kind.field: kind for kind in (JOB, TRAIN_JOB, JOB_SET, LEADER_WORKER_SET, SERVER)}
"""By field of spec.workload. Of kinds that are made into each other the outer one is first: pods have the labels of
both."""


def kind_of(workload: Workload) -> Kind[Any]:
    """The kind of child that this workload becomes."""
    return KINDS[workload.field]


def pod_sets_of(workload: Workload) -> tuple[PodSet, ...]:
    """What the workload's pods are made from. Raises workloads.template.InvalidTemplate."""
    return kind_of(workload).pod_sets(workload.chosen)


def kind_name(workload: Workload) -> str:
    """What Kubernetes calls the child that this workload becomes, such as Job."""
    return kind_of(workload).resource.kind


def naming_of(workload: Workload, job: str) -> Callable[[int], str]:
    """What Kubernetes calls the child of each Revision of a job of this name, such as Job train-r2."""
    return lambda revision: f"{kind_name(workload)} {child_name(job, revision)}"


def child_resources() -> tuple[Resource, ...]:
    """The API resources of all kinds."""
    return tuple(kind.resource for kind in KINDS.values())


def optional_resources() -> tuple[Resource, ...]:
    """Those that a cluster may not have."""
    return tuple(kind.resource for kind in KINDS.values() if kind.optional)


def kind_at(resource: Resource) -> Kind[Any] | None:
    """The kind with this resource; None if its objects are no children."""
    return next((kind for kind in KINDS.values() if kind.resource == resource), None)


def adoptable() -> tuple[Kind[Any], ...]:
    """The kinds whose objects can be adopted."""
    return tuple(kind for kind in KINDS.values() if kind.adoption is not None)


def adoptable_text() -> str:
    """What Kubernetes calls them."""
    *others, last = sorted(kind.resource.kind for kind in adoptable())
    return f"{', '.join(others)} and {last}"


def kind_named(api_version: str, kind: str) -> Kind[Any] | None:
    """The kind that Kubernetes calls so, in any version of its group; None where its objects can't be adopted."""
    group = api_version.rpartition("/")[0]
    return next((one for one in adoptable() if (one.resource.group, one.resource.kind) == (group, kind)), None)


def adopted_workload(kind: Kind[Any], body: Mapping[str, Any]) -> Workload:
    """The workload that an object is which somebody else has made. Raises workloads.template.InvalidTemplate."""
    try:
        return Workload.model_validate({kind.field: adoption_of(kind).adopted(body)})
    except ValueError as error:
        raise InvalidTemplate(f"{kind.resource.kind} can't be read: {error}") from None


def child_owning(pod: Mapping[str, Any], child: str) -> str:
    """The uid of the child of this name, of any kind, that a pod with this metadata belongs to; empty if to none."""
    return next((uid for kind in KINDS.values() if (uid := kind.owner_of(pod, child))), "")
