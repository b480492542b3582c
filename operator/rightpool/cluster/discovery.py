"""Which resources the API server serves. While it starts, or without its aggregated APIs, it serves only some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound

WATCH_VERBS: Final = frozenset({"list", "watch"})


def unserved(client: ClusterClient, resources: Iterable[Resource]) -> list[str]:
    """The resources that can't be watched now, as `plural.group`. Raises ClusterError if discovery fails."""
    groups = {str(group.get("name")) for group in client.request("GET", "/apis").get("groups") or ()}
    served: dict[str, frozenset[str]] = {}
    missing = []
    for resource in resources:
        path = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        if path not in served:
            served[path] = _watchable(client, path) if not resource.group or resource.group in groups else frozenset()
        if resource.plural not in served[path]:
            missing.append(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)
    return missing


def _watchable(client: ClusterClient, path: str) -> frozenset[str]:
    try:
        entries: list[dict[str, Any]] = client.request("GET", path).get("resources") or []
    except NotFound:
        return frozenset()
    return frozenset(str(entry.get("name")) for entry in entries if WATCH_VERBS.issubset(entry.get("verbs") or ()))
