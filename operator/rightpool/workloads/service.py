"""The headless Service that gives a Revision's pods their host names."""

from typing import Any

from rightpool.planning.revision import RevisionRef
from rightpool.workloads.names import check_names, child_name, object_labels, selector_labels, service_name
from rightpool.workloads.owner import Owner


def build_service(owner: Owner, ref: RevisionRef) -> dict[str, Any] | None:
    """A Revision's Service, for server-side apply before its Job. None where a single pod needs to find nobody: most
    jobs are of that kind, and each Service is work for the cluster's DNS and for every node that watches Services.

    Addresses are published before the pods are ready: training pods become ready only by finding each other.
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
            "ownerReferences": [owner.reference],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(owner.name, ref.revision),
        },
    }
