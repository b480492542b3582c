"""Writes the status of cluster-scoped objects: pools and the policy. Unchanged ones are not written.

What turns in the conditions has an Event, sent after the write that made it true.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from rightpool.api.conditions import Condition
from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Conflict
from rightpool.reporting.condition_events import condition_events
from rightpool.reporting.events import Event
from rightpool.runtime.observe.facts import meta, reference
from rightpool.runtime.observe.store import Store

logger = logging.getLogger(__name__)


class StatusPublisher:
    """Only the leader uses it."""

    def __init__(self, client: ClusterClient, store: Store, post: Callable[[Event], object]) -> None:
        """post: sends an Event."""
        self._client = client
        self._store = store
        self._post = post

    def publish(
        self,
        resource: Resource,
        stored: Mapping[str, Any],
        status: Mapping[str, Any],
        kinds: type[StrEnum],
        *,
        foreign: frozenset[str] = frozenset(),
        scaled: bool = False,
    ) -> bool:
        """Whether it was written. Raises ClusterError where the API server refuses it.

        kinds: the types of its conditions. foreign: fields that another manager applies, which stay as they are.
        scaled: an autoscaler brings what it has.
        """
        if status == {key: value for key, value in (stored.get("status") or {}).items() if key not in foreign}:
            return False
        regarding = reference(resource, stored)
        before, after = stored_conditions(stored, kinds), stored_conditions({"status": status}, kinds)
        events = list(condition_events(regarding, before, after, scaled=scaled))
        about = {"name": meta(stored)["name"], "uid": meta(stored)["uid"]}
        if events:  # of several operators that see the same turn, one says it
            about["resourceVersion"] = meta(stored)["resourceVersion"]
        try:
            answer = self._client.apply(resource, {"metadata": about, "status": status}, subresource="status")
        except Conflict as error:
            logger.debug("%s %s: %s", resource.kind, about["name"], error.message)  # the next cycle sees what is stored
            return False
        self._store.assume(resource, answer)
        for event in events:
            self._post(event)
        return True


def stored_conditions(stored: Mapping[str, Any], kinds: type[StrEnum]) -> list[Condition]:
    """The stored conditions of these types. Those of other writers are dropped, because the list has a maximum length.
    An empty list where they can't be read."""
    conditions = (stored.get("status") or {}).get("conditions") or ()
    try:
        return [Condition.from_dict(one) for one in conditions if one.get("type") in set(kinds)]
    except ValueError:
        return []
