"""Facts of watched objects: the few fields on which decisions depend.

A Pod or Node takes 5 to 20 KB and changes often in other fields. Facts of ten thousand jobs fit in memory, and a
heartbeat does not change them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from rightpool.api.altered import altered
from rightpool.api.kubernetes import Resource
from rightpool.api.quantities import parse_count
from rightpool.api.revision import MAX_REVISION
from rightpool.api.units import unix_time_of
from rightpool.api.value_object import value_object
from rightpool.contract import (
    ANNOTATION_ADOPTED_BY,
    ANNOTATION_ADOPTED_REVISION,
    GROUP,
    LABEL_JOB,
    LABEL_REVISION,
    LABEL_ROLE,
    SIDECAR_CONTAINER,
)
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.hardware.node_needs import allocatable
from rightpool.planning.jobs.revision_state import UnseenPod
from rightpool.runtime.observe.adopted_facts import AdoptedFacts, adopted_facts
from rightpool.runtime.observe.pod_status import (
    NOT_BLOCKED,
    ContainerEnd,
    blocked_by,
    bound_at,
    failure_of,
    fault_of,
    last_end,
    restarts_of,
    runs_on,
    true_since,
    true_words,
    unprepared,
    unready,
    unschedulable_since,
)
from rightpool.workloads.kinds.kind import ChildState, Kind, adoption_of, condition_is_true
from rightpool.workloads.kinds.registry import child_owning
from rightpool.workloads.metadata import controller_reference
from rightpool.workloads.names import ANNOTATION_HELD, LABEL_QUEUE, child_name

MAX_DIGITS: Final = len(str(MAX_REVISION))
_UID_RANGE: Final = "openshift.io/sa.scc.uid-range"


@value_object
class PodFacts:
    """A Pod that has the label of a ProfiledJob."""

    uid: str
    """Tells it from an earlier one of the name."""
    namespace: str
    """That of its ProfiledJob."""
    name: str
    """Of the pod."""

    job: str
    """Name of the ProfiledJob in its label."""

    revision: int | None
    """None if its label is not a number. Then it uses chips but belongs to no Revision."""

    owner: str
    """Uid of the child of its Revision's name that it belongs to; empty if it belongs to none, and is foreign."""

    done: bool
    """Whether it has succeeded or failed."""

    ready: bool
    """Whether all its containers are ready."""

    deleting: bool
    """Whether it is being deleted; its containers may still run."""

    ip: str | None
    """None before it has one."""
    node: str | None
    """None while it waits for one."""

    chips: tuple[tuple[str, int], ...]
    """What it requests, by resource name."""

    blocked: str | None
    """Why it does not run."""

    failure: str | None
    """How its container ended, or why else it failed."""

    fault: str | None = None
    """Why it failed, where no container is to blame: its node did not take it, or Kubernetes ended it."""

    unready: str | None = None
    """Kubernetes' words about containers that are not ready."""

    succeeded: bool = False
    """Whether all its containers have ended well."""

    bound_at: float | None = None
    """Unix seconds when it was given its node."""

    end: ContainerEnd | None = None
    """How a container failed last; None where none has, and where the node was drained or lost."""

    restarts: int = 0
    """How often the kubelet has started containers anew."""

    own_block: bool = False
    """Whether `blocked` is what the job asks for itself."""

    refused: bool = False
    """Whether `blocked` waits for a user's correction."""

    cold: bool = False
    """Whether `blocked` is that a server does not warm up."""

    unschedulable_since: float | None = None
    """Unix seconds since when Kubernetes finds no node for it."""

    unseen: UnseenPod | None = None
    """None where its scheduler has said something of it, or it has a node."""

    disrupted: bool = False
    """Whether Kubernetes says that it is to be evicted or preempted."""

    disruption: str | None = None
    """Kubernetes' words about who does that."""

    disrupted_at: float | None = None
    """Unix seconds when Kubernetes said so, of a pod that has ended, too."""

    tolerations: tuple[Mapping[str, Any], ...] = ()
    """Those that let it stay on a node that others are evicted from."""

    due: float | None = None
    """Unix seconds when a pod that is being deleted is to be gone, its grace period included."""

    role: str = ""
    """Which of the workload's pod sets it is of, by its label; empty without one."""

    profiled: bool = True
    """Whether it may have the profiler. Pods of adopted objects have it where they were made after the adoption."""


@value_object
class ChildFacts:
    """The child of a Revision."""

    kind: Kind[Any]
    """What the ProfiledJob runs as, such as a Job."""
    uid: str
    """Tells it from an earlier one of the name."""
    namespace: str
    """That of its ProfiledJob."""
    name: str
    """Of the object: the ProfiledJob's with the Revision's number."""

    job: str
    """Name of the ProfiledJob in its label."""

    revision: int
    """The number in its name and label."""

    owner: str
    """Uid of its controller; empty if it has none."""

    named: bool
    """Whether its controller is a ProfiledJob of the name in its label."""

    deleting: bool
    """Whether it is being deleted."""

    state: ChildState
    """Its own spec and status, in terms of all kinds."""

    queued: bool = False
    """Whether a queue decides when it runs."""

    held: bool = False
    """Whether its queue was told not to run it."""

    adopted: AdoptedFacts | None = None
    """Of an object that somebody else has made: then `owner` is the ProfiledJob that it names."""

    @property
    def ended(self) -> bool:
        """Whether it is being deleted, or will have no pods any more."""
        return self.deleting or self.state.succeeded or self.state.failed

    @property
    def members(self) -> str:
        """What pods that are its own have as their owner."""
        return self.state.members or self.uid

    @property
    def reference(self) -> dict[str, Any]:
        """An entry of `metadata.ownerReferences` for objects that are deleted with it."""
        resource = self.kind.resource
        identity = {"apiVersion": resource.api_version, "kind": resource.kind, "name": self.name, "uid": self.uid}
        return {**identity, "controller": True}


def reference(resource: Resource, body: Mapping[str, Any]) -> dict[str, str]:
    """How an Event names an object without a namespace."""
    about = meta(body)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": str(about.get("name", "")),
        "uid": str(about.get("uid", "")),
    }


def meta(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object's metadata."""
    return body.get("metadata") or {}


def revision_of(labels: Mapping[str, str]) -> int | None:
    """The Revision's number in an object's labels; None if it is not a valid one."""
    number = labels.get(LABEL_REVISION, "")
    return int(number) if number.isdecimal() and len(number) <= MAX_DIGITS else None


def pod_facts(body: Mapping[str, Any]) -> PodFacts | None:
    """The facts of a Pod with a ProfiledJob's label; None for other pods.

    Foreign pods with the label are kept too, because other pods' chips are counted without them.
    """
    metadata = meta(body)
    labels = metadata.get("labels") or {}
    if LABEL_JOB not in labels:
        return None
    job, revision = sys.intern(labels[LABEL_JOB]), revision_of(labels)
    owner = "" if revision is None else child_owning(metadata, child_name(job, revision))
    return _pod_facts(body, job, revision, owner, sys.intern(labels.get(LABEL_ROLE, "")))


def member_facts(body: Mapping[str, Any], child: ChildFacts) -> PodFacts | None:
    """The facts of a pod of an adopted object, whatever its labels of ours; None for a pod that is not its own."""
    metadata = meta(body)
    part = adoption_of(child.kind)
    if not part.owns(metadata, child.name, child.uid):
        return None
    role = sys.intern(part.role_of(metadata))
    return altered(_pod_facts(body, child.job, child.revision, child.uid, role), profiled=_has_profiler(body))


def as_member(body: Mapping[str, Any], facts: PodFacts, children: Iterable[ChildFacts]) -> PodFacts:
    """A pod that has our label, as that of the adopted object whose it is, if it is one's."""
    members = (member_facts(body, child) for child in children if child.adopted is not None)
    return next((member for member in members if member is not None), facts)


def _has_profiler(body: Mapping[str, Any]) -> bool:
    containers = (body.get("spec") or {}).get("initContainers") or ()
    return any(one.get("name") == SIDECAR_CONTAINER for one in containers)


def _pod_facts(body: Mapping[str, Any], job: str, revision: int | None, owner: str, role: str) -> PodFacts:
    metadata = meta(body)
    spec, status = body.get("spec") or {}, body.get("status") or {}
    phase = status.get("phase")
    done = phase in ("Succeeded", "Failed")
    block = NOT_BLOCKED if done else blocked_by(status)
    blocked = block.text
    if blocked is None and not done and spec.get("nodeName") and not metadata.get("deletionTimestamp"):
        blocked = unprepared(status)
    return PodFacts(
        uid=str(metadata["uid"]),
        namespace=sys.intern(str(metadata.get("namespace"))),
        name=str(metadata["name"]),
        job=job,
        revision=revision,
        owner=owner,
        role=role,
        done=done,
        ready=not done and condition_is_true(status.get("conditions") or (), "Ready"),
        deleting=bool(metadata.get("deletionTimestamp")),
        ip=status.get("podIP"),
        node=None if spec.get("nodeName") is None else sys.intern(str(spec["nodeName"])),
        chips=requested(spec),
        blocked=blocked,
        unseen=None if done or spec.get("nodeName") else _unseen(metadata, spec, status),
        unschedulable_since=None if done or spec.get("nodeName") else unschedulable_since(status),
        failure=failure_of(status) if phase == "Failed" else None,
        fault=fault_of(status) if phase == "Failed" else None,
        unready=None if done else runs_on(status, _with_chips(spec)) or unready(status),
        succeeded=phase == "Succeeded",
        bound_at=bound_at(status),
        end=None if condition_is_true(status.get("conditions") or (), "DisruptionTarget") else last_end(status),
        restarts=restarts_of(status),
        refused=block.refused,
        cold=block.cold,
        own_block=block.own,
        disrupted=not done and condition_is_true(status.get("conditions") or (), "DisruptionTarget"),
        disruption=None if done else true_words(status, "DisruptionTarget"),
        disrupted_at=true_since(status, "DisruptionTarget"),
        tolerations=() if done else _staying(spec),
        due=unix_time_of(metadata.get("deletionTimestamp")),
    )


def child_facts(kind: Kind[Any], body: Mapping[str, Any], before: ChildFacts | None = None) -> ChildFacts | None:
    """The facts of a Revision's child; None for other objects. before: those of the same object, known already.

    A child is identified by its name, which is unique. Labels and owner are not sufficient, because any user who may
    create such objects can write them.
    """
    metadata = meta(body)
    labels = metadata.get("labels") or {}
    annotations = metadata.get("annotations") or {}
    job, revision = sys.intern(labels.get(LABEL_JOB, "")), revision_of(labels)
    if job and kind.adoption is not None and ANNOTATION_ADOPTED_BY in annotations and LABEL_REVISION not in labels:
        return _adopted_facts(kind, body, job, before)
    if not job or revision is None or metadata["name"] != child_name(job, revision):
        return None
    return ChildFacts(
        kind=kind,
        uid=str(metadata["uid"]),
        namespace=sys.intern(str(metadata.get("namespace"))),
        name=str(metadata["name"]),
        job=job,
        revision=revision,
        owner=controller_of(metadata),
        named=_is_profiled_job(controller_reference(metadata), job),
        deleting=bool(metadata.get("deletionTimestamp")),
        state=kind.observe(body),
        queued=bool(labels.get(LABEL_QUEUE)),
        held=ANNOTATION_HELD in annotations,
    )


def _adopted_facts(kind: Kind[Any], body: Mapping[str, Any], job: str, before: ChildFacts | None) -> ChildFacts:
    """Of an object that somebody else has made. It says itself which ProfiledJob it is looked at for: the operator has
    written that, and a ProfiledJob that does not name the object takes no notice."""
    metadata = meta(body)
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    about = adopted_facts(kind, body, None if before is None else before.adopted)
    number = annotations.get(ANNOTATION_ADOPTED_REVISION)
    return ChildFacts(
        kind=kind,
        uid=str(metadata["uid"]),
        namespace=sys.intern(str(metadata.get("namespace"))),
        name=str(metadata["name"]),
        job=job,
        revision=revision_of({LABEL_REVISION: str(number)}) or 1,
        owner=sys.intern(str(annotations[ANNOTATION_ADOPTED_BY])),
        named=False,
        deleting=bool(metadata.get("deletionTimestamp")),
        state=altered(kind.observe(body), role=sys.intern(about.role)),
        queued=bool(labels.get(LABEL_QUEUE)),
        held=ANNOTATION_HELD in annotations,
        adopted=about,
    )


def node_facts(body: Mapping[str, Any]) -> NodeFacts:
    """The facts of a Node: without heartbeats, images and addresses."""
    metadata, spec, status = meta(body), body.get("spec") or {}, body.get("status") or {}
    taints = (
        Taint(str(taint.get("key")), str(taint.get("effect")), str(taint.get("value") or ""))
        for taint in spec.get("taints") or ()
    )
    offered = status.get("allocatable") or {}
    return NodeFacts(
        name=str(metadata.get("name")),
        labels=dict(metadata.get("labels") or {}),
        taints=tuple(taints),
        chips={name: n for name, text in offered.items() if "/" in name and (n := parse_count(text)) is not None},
        host=_host(tuple((name, str(text)) for name, text in sorted(offered.items()) if "/" not in name)),
        ready=condition_is_true(status.get("conditions") or (), "Ready"),
        unschedulable=bool(spec.get("unschedulable")),
    )


@lru_cache(maxsize=1024)  # nodes of one type share it
def _host(offered: tuple[tuple[str, str], ...]) -> Mapping[str, int]:
    return allocatable(dict(offered))


def controller_of(metadata: Mapping[str, Any]) -> str:
    """The uid of the object's controller; empty if it has none."""
    return str(controller_reference(metadata).get("uid", ""))


def controlled_by(metadata: Mapping[str, Any], resource: Resource, name: str) -> bool:
    """Whether the object's controller has this kind and name, with any uid."""
    controller = controller_reference(metadata)
    found = (controller.get("apiVersion"), controller.get("kind"), controller.get("name"))
    return found == (resource.api_version, resource.kind, name)


def _is_profiled_job(reference: Mapping[str, Any], name: str) -> bool:
    group = str(reference.get("apiVersion")).partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (GROUP, "ProfiledJob", name)


def requested(spec: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Extended resources that a pod requests, by name, summed over its containers."""
    chips: dict[str, int] = {}
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            number = parse_count(amount) if "/" in name else None
            if number is not None:
                chips[sys.intern(name)] = chips.get(name, 0) + number
    return tuple(sorted(chips.items()))


def _unseen(metadata: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]) -> UnseenPod | None:
    answered = any(condition.get("type") == "PodScheduled" for condition in status.get("conditions") or ())
    made = unix_time_of(metadata.get("creationTimestamp"))
    if answered or made is None or metadata.get("deletionTimestamp"):
        return None
    return UnseenPod(made, sys.intern(str(spec.get("schedulerName") or "default-scheduler")))


def _with_chips(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the containers that request extended resources."""
    containers = spec.get("containers") or ()
    return tuple(str(one.get("name")) for one in containers if requested({"containers": [one]}))


def _staying(spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Tolerations of NoExecute. Those with a time of grace do not let the pod stay."""
    return tuple(
        toleration
        for toleration in spec.get("tolerations") or ()
        if (toleration.get("effect") or "NoExecute") == "NoExecute" and toleration.get("tolerationSeconds") is None
    )


def gives_users(body: Mapping[str, Any]) -> str | None:
    """The name of a namespace that gives its containers their users, as OpenShift's do; None of another."""
    metadata = meta(body)
    return str(metadata["name"]) if _UID_RANGE in (metadata.get("annotations") or {}) else None
