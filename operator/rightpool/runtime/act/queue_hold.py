"""Holds: a child in a queue is stopped and started through its queue.

Kueue resumes what it has admitted, so suspending the child itself would be undone at once, without end. What Kueue
heeds is `spec.active` of its Workload: where it is false, the Workload is evicted, gives its quota back and waits. A
note at the child, which is watched, says that it is so. A Workload is activated again only where the API server says
that the operator deactivated it: others may do so too, and whoever can write children can forge the note.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.placement import Placement
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import WORKLOADS
from rightpool.contract import FIELD_MANAGER
from rightpool.runtime.observe.facts import ChildFacts, controller_of, meta
from rightpool.workloads.names import ANNOTATION_HELD

LABEL_JOB_UID: Final = "kueue.x-k8s.io/job-uid"


def hold_wanted(suspend: bool, child: ChildFacts) -> bool | None:
    """Whether the queue is to be told to stop the child or to run it again; None where it complies."""
    if suspend:
        return None if child.held and child.state.suspended else True
    return False if child.held else None


def hold(client: ClusterClient, child: ChildFacts, wanted: bool, placement: Placement) -> dict[str, Any]:
    """Stop the child or let its queue run it again, and return it as it is stored then.

    The note is written before the Workload is deactivated, and removed after it is active again: a crash in between
    leads to the same requests once more. Where Kueue is not installed, or was removed, the child itself is suspended,
    and stays so until a queue resumes it.
    """
    suspended = child.kind.suspension(True, placement, child.state.unit)
    if not wanted:
        there = activate(client, child, True)
        return _note(client, child, {}, None if there else suspended)
    noted = {"annotations": {ANNOTATION_HELD: "true"}}
    stored = _note(client, child, noted)
    if activate(client, child, False) or child.kind.observe(stored).suspended:
        return stored
    return _note(client, child, noted, suspended)


def _note(
    client: ClusterClient, child: ChildFacts, noted: Mapping[str, Any], spec: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    about = {"name": child.name, "namespace": child.namespace, "uid": child.uid, **noted}
    return client.apply(child.kind.resource, {"metadata": about, **(spec or {})})


def activate(client: ClusterClient, child: ChildFacts, active: bool) -> bool:
    """Have the queue run the child, or not. Whether Kueue is there."""
    found = queue_workloads(client, child)
    if found is None:
        return False
    for workload in found:
        about = meta(workload)
        if workload["spec"].get("active", True) is active:
            continue
        if active and not _deactivated_here(about):
            continue
        named = {key: about[key] for key in ("name", "namespace", "uid")}
        client.apply(WORKLOADS, {"metadata": named, "spec": {"active": active}})
    return True


def queue_workloads(client: ClusterClient, child: ChildFacts) -> list[dict[str, Any]] | None:
    """What Kueue has of the child; None where there is no Kueue."""
    try:
        found = client.list_all(WORKLOADS, child.namespace, labels=f"{LABEL_JOB_UID}={child.uid}")
    except NotFound:
        return None
    return [workload for workload in found if controller_of(meta(workload)) == child.uid]


def _deactivated_here(metadata: Mapping[str, Any]) -> bool:
    """Whether `spec.active` has the value that the operator gave it."""
    ours = (entry for entry in metadata.get("managedFields") or () if entry.get("manager") == FIELD_MANAGER)
    return any("f:active" in ((entry.get("fieldsV1") or {}).get("f:spec") or {}) for entry in ours)
