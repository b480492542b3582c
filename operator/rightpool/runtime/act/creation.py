"""Creates an object whose name another object may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Forbidden
from rightpool.cluster.resources import SERVICES


def create_or_get(client: ClusterClient, resource: Resource, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Create an object, or get the existing one. An apply would take over a foreign object."""
    name, namespace = manifest["metadata"]["name"], manifest["metadata"]["namespace"]
    try:
        return client.create(resource, manifest, strict=resource is not SERVICES)
    except AlreadyExists:
        return client.get(resource, name, namespace)
    except Forbidden as refusal:
        # Quotas are asked before the name is looked at, and the existing one may be what uses a quota up.
        try:
            return client.get(resource, name, namespace)
        except ClusterError:
            raise refusal from None


def name_taken_text(resource: Resource, name: str) -> str:
    """What is wrong where an object of another owner has the name."""
    return (
        f"{resource.kind} {name} exists and is not this ProfiledJob's: delete it, or give the ProfiledJob another "
        "name. The operator never changes objects of other owners"
    )
