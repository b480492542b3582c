"""The headless Service that gives a Revision's pods their host names."""

from collections.abc import Mapping
from typing import Any

from rightpool.api.revision import Revision
from rightpool.workloads.names import check_names, child_name, object_labels, selector_labels, service_name
from rightpool.workloads.owner import Owner


def build_service(owner: Owner, ref: Revision, child: Mapping[str, Any]) -> dict[str, Any] | None:
    """The Service of a Revision, created before its child starts; None for a single pod.

    Most jobs have a single pod, and each Service costs the cluster's DNS and every node that watches Services. `child`
    is the owner reference of the child, with which the Service is deleted. Addresses are published before the pods are
    ready, because training pods become ready only after they have found each other.
    """
    placement = ref.placement
    if placement.replicas < 2:
        return None
    check_names(owner.name, ref.revision, placement.replicas)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service_name(child_name(owner.name, ref.revision)),
            "namespace": owner.namespace,
            "labels": object_labels(owner.name, ref.revision, placement.pool),
            "ownerReferences": [dict(child)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(owner.name, ref.revision),
        },
    }
