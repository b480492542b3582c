"""Watches into the store. kopf sees to listing, watching and reconnecting; what an event means is decided elsewhere."""

from __future__ import annotations

from typing import Any, Final

import kopf

from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    JOBS,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
    Resource,
)
from rightpool.contract import LABEL_JOB
from rightpool.runtime.store import Store

FEEDS: Final = (PROFILED_JOBS, ACCELERATOR_POOLS, PLACEMENT_POLICIES, NODES, JOBS, PODS)


def register_feeds(registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, store: Store) -> None:
    """`on.event` alone: no finalizer, no annotation. An operator that is gone has left nothing behind."""
    for resource in FEEDS:
        _register(registry, resource, store)
    # The API server filters: other people's Jobs and Pods, by far the most objects of a cluster, never get here.
    for resource in (JOBS, PODS):
        settings.watching.label_selectors[_selector(resource)] = LABEL_JOB


def _register(registry: kopf.OperatorRegistry, resource: Resource, store: Store) -> None:
    @kopf.on.event(  # type: ignore[untyped-decorator, unused-ignore]
        resource.group, resource.version, resource.plural, id=f"feed-{resource.plural}", registry=registry
    )
    async def feed(event: Any, **_: Any) -> None:
        store.observe(resource, event["type"], event["object"])


def _selector(resource: Resource) -> Any:
    return (
        (resource.group, resource.version, resource.plural) if resource.group else (resource.version, resource.plural)
    )
