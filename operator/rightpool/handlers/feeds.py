"""Feeds watch events into the store. kopf lists, watches and reconnects; the store interprets the events."""

from __future__ import annotations

from typing import Any

import kopf

from rightpool.api.kubernetes import Resource
from rightpool.runtime.observe.store import Store


def register_feeds(registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, store: Store) -> None:
    """Register `on.event` handlers only: they need no finalizers or annotations, so nothing remains after removal."""
    for resource, label in store.watched.items():
        _register(registry, resource, store)
        if label is not None:
            settings.watching.label_selectors[_selector(resource)] = label


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
