"""The headless Service that gives a Revision's pods their host names."""

from collections.abc import Mapping
from typing import Any

from rightpool.api.revision import Revision
from rightpool.workloads.names import check_names, object_labels, selector_labels
from rightpool.workloads.owner import Owner
from rightpool.workloads.rendezvous import Hosts


def build_service(owner: Owner, ref: Revision, hosts: Hosts, child: Mapping[str, Any]) -> dict[str, Any]:
    """The Service of a Revision, created before its child starts.

    `child` is the owner reference of the child, with which the Service is deleted. Addresses are published before the
    pods are ready, because training pods become ready only after they have found each other.
    """
    check_names(owner.name, hosts.service, *hosts.pods)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": hosts.service,
            "namespace": owner.namespace,
            "labels": object_labels(owner.name, ref.revision, ref.placement.pool),
            "ownerReferences": [dict(child)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": selector_labels(owner.name, ref.revision),
        },
    }
