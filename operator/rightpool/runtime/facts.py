"""What is kept of the objects that are watched: the few fields that decisions depend on.

A Pod or Node is 5 to 20 KB and changes all the time for reasons that are nobody's business here. Reduced to facts, ten
thousand jobs fit in memory, and a heartbeat is seen to change nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from rightpool.api.resources import MAX_REVISION
from rightpool.contract import GROUP, LABEL_JOB, LABEL_REVISION
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.workloads.names import child_name

# Reasons for which a container waits and will go on waiting until somebody does something.
_STUCK: Final = frozenset(
    {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
_CRASHING: Final = "CrashLoopBackOff"
_WHOLE: Final = re.compile(r"([0-9]{1,18})([kMGTPE]?)")
_THOUSANDS: Final = ("", "k", "M", "G", "T", "P", "E")
MAX_DIGITS: Final = len(str(MAX_REVISION))


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A Pod that wears the label of a ProfiledJob. done: Succeeded or Failed. ready: all its containers are.

    revision: None where its label is no number: then it holds chips, and is nothing of the job's. named: its controller
    is a Job of the Revision's name. ip: None until it has one. chips: what it requests, by resource name. blocked: why
    it does not run. failure: how its container ended.
    """

    uid: str
    namespace: str
    name: str
    job: str
    revision: int | None
    owner: str
    named: bool
    done: bool
    ready: bool
    deleting: bool
    ip: str | None
    node: str | None
    chips: tuple[tuple[str, int], ...]
    blocked: str | None
    failure: str | None
    succeeded: bool = False


@dataclass(frozen=True, slots=True)
class ChildFacts:
    """The Job of a Revision. owner: uid of its controller; named: which is a ProfiledJob of the name in its label.

    started_at: Unix seconds; Kubernetes takes it back while the Job is suspended, and sets it anew afterwards.
    ending: Kubernetes has decided how it ends, and ends its pods before it says so.
    """

    uid: str
    namespace: str
    name: str
    job: str
    revision: int
    owner: str
    named: bool
    pods: int
    suspended: bool
    deleting: bool
    succeeded: bool
    failed: bool
    failure: str | None
    started_at: float | None = None
    ending: bool = False


def meta(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object's metadata."""
    return body.get("metadata") or {}


def revision_of(labels: Mapping[str, str]) -> int | None:
    """The number of a labelled object's Revision; None where that is none that a Revision can have."""
    number = labels.get(LABEL_REVISION, "")
    return int(number) if number.isdecimal() and len(number) <= MAX_DIGITS else None


def pod_facts(body: Mapping[str, Any]) -> PodFacts | None:
    """None where the Pod does not say that it is a ProfiledJob's.

    Whatever says so is kept: its chips are counted here and nowhere else.
    """
    about = meta(body)
    labels = about.get("labels") or {}
    if LABEL_JOB not in labels:
        return None
    job, revision = sys.intern(labels[LABEL_JOB]), revision_of(labels)
    spec, status = body.get("spec") or {}, body.get("status") or {}
    phase = status.get("phase")
    done = phase in ("Succeeded", "Failed")
    return PodFacts(
        uid=str(about["uid"]),
        namespace=sys.intern(str(about.get("namespace"))),
        name=str(about["name"]),
        job=job,
        revision=revision,
        owner=controller_of(about),
        named=revision is not None and _is_child(_controller(about), job, revision),
        done=done,
        ready=not done and _is_true(status.get("conditions") or (), "Ready"),
        deleting=bool(about.get("deletionTimestamp")),
        ip=status.get("podIP"),
        node=None if spec.get("nodeName") is None else sys.intern(str(spec["nodeName"])),
        chips=requested(spec),
        blocked=None if done else _blocked(status),
        failure=_failure(status) if phase == "Failed" else None,
        succeeded=phase == "Succeeded",
    )


def child_facts(body: Mapping[str, Any]) -> ChildFacts | None:
    """None where the Job is not a Revision's. Of each there is one, by its name: labels and owner, which anybody can
    write who may create Jobs, would be those of several."""
    about = meta(body)
    labels = about.get("labels") or {}
    job, revision = sys.intern(labels.get(LABEL_JOB, "")), revision_of(labels)
    if not job or revision is None or about["name"] != child_name(job, revision):
        return None
    spec, status = body.get("spec") or {}, body.get("status") or {}
    conditions = status.get("conditions") or ()
    failed = next((c for c in conditions if c.get("type") == "Failed" and c.get("status") == "True"), None)
    succeeded = _is_true(conditions, "Complete")
    decided = _is_true(conditions, "SuccessCriteriaMet") or _is_true(conditions, "FailureTarget")
    return ChildFacts(
        uid=str(about["uid"]),
        namespace=sys.intern(str(about.get("namespace"))),
        name=str(about["name"]),
        job=job,
        revision=revision,
        owner=controller_of(about),
        named=_is_profiled_job(_controller(about), job),
        pods=int(spec.get("parallelism") or 0),
        suspended=bool(spec.get("suspend")),
        deleting=bool(about.get("deletionTimestamp")),
        succeeded=succeeded,
        failed=failed is not None,
        failure=None if failed is None else f"{failed.get('reason', '')}: {failed.get('message', '')}".strip(": "),
        started_at=moment(status.get("startTime")),
        ending=decided and not succeeded and failed is None,
    )


def moment(timestamp: object) -> float | None:
    """A time as the API server writes it, as Unix seconds."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if isinstance(timestamp, str) else None


def node_facts(body: Mapping[str, Any]) -> NodeFacts:
    """A Node without heartbeats, images, addresses and all other resources than extended ones."""
    about, spec, status = meta(body), body.get("spec") or {}, body.get("status") or {}
    taints = (
        Taint(str(taint.get("key")), str(taint.get("effect")), str(taint.get("value") or ""))
        for taint in spec.get("taints") or ()
    )
    allocatable = status.get("allocatable") or {}
    return NodeFacts(
        name=str(about.get("name")),
        labels=dict(about.get("labels") or {}),
        taints=tuple(taints),
        chips={name: n for name, text in allocatable.items() if "/" in name and (n := whole(text)) is not None},
        ready=_is_true(status.get("conditions") or (), "Ready"),
        unschedulable=bool(spec.get("unschedulable")),
    )


def controller_of(about: Mapping[str, Any]) -> str:
    """The uid of the object's controller, empty where it has none."""
    return str(_controller(about).get("uid", ""))


def controlled_by_job(about: Mapping[str, Any], name: str) -> bool:
    """Whether the object's controller is a batch/v1 Job of that name, whichever."""
    controller = _controller(about)
    return (controller.get("apiVersion"), controller.get("kind"), controller.get("name")) == ("batch/v1", "Job", name)


def _is_profiled_job(reference: Mapping[str, Any], name: str) -> bool:
    group = str(reference.get("apiVersion")).partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (GROUP, "ProfiledJob", name)


def _is_child(reference: Mapping[str, Any], job: str, revision: int) -> bool:
    group = str(reference.get("apiVersion")).partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == ("batch", "Job", child_name(job, revision))


def _controller(about: Mapping[str, Any]) -> Mapping[str, Any]:
    references = about.get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), {})


def requested(spec: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Extended resources that a pod asks for, by name: its containers' sum."""
    chips: dict[str, int] = {}
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            number = whole(amount) if "/" in name else None
            if number is not None:
                chips[sys.intern(name)] = chips.get(name, 0) + number
    return tuple(sorted(chips.items()))


def whole(amount: object) -> int | None:
    """A quantity of things that can't be divided, as the API server writes it: 8, and a thousand as 1k. None for what
    can be no count of them."""
    match = _WHOLE.fullmatch(str(amount))
    return None if match is None else int(match[1]) * 1000 ** _THOUSANDS.index(match[2])


def _is_true(conditions: Iterable[Mapping[str, Any]], kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def _blocked(status: Mapping[str, Any]) -> str | None:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}".strip(": ")
    for container in _containers(status):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason")
        if reason in _STUCK or reason == _CRASHING:
            return f"container {container.get('name')}: {reason}: {waiting.get('message', '')}".strip(": ")
    return None


def _failure(status: Mapping[str, Any]) -> str | None:
    for container in _containers(status):
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            return f"container {container.get('name')} exited with {ended['exitCode']} ({ended.get('reason', 'Error')})"
    reason = status.get("reason")
    return None if reason is None else f"{reason}: {status.get('message', '')}".strip(": ")


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
