"""Deletes exactly the version of an object that was judged, and none twice before the watch reports the deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.runtime.observe.facts import meta
from rightpool.workloads.kinds.registry import kind_at

END_SECONDS: Final = 5.0  # an accepted deletion is not repeated until the watch reports it


class Deletions:
    """Thread-safe where one object is deleted by one thread at a time."""

    def __init__(self, client: ClusterClient, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._accepted: dict[str, float] = {}  # uid of a child or Service → when its deletion was accepted

    def forget_old(self) -> None:
        """Forget those that may be repeated."""
        now = self._clock()
        self._accepted = {uid: at for uid, at in self._accepted.items() if now - at < END_SECONDS}

    def may_delete(self, uid: str) -> bool:
        """Whether no deletion of this object was accepted in the last seconds."""
        ended_at = self._accepted.get(uid)
        return ended_at is None or self._clock() - ended_at >= END_SECONDS

    def delete(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Delete exactly this version of the object.

        A child goes when its pods have gone. One with a companion goes first: Trainer's webhook refuses each update of
        a TrainJob whose runtime is gone, also the one that ends a deletion in the foreground.
        """
        metadata, kind = meta(body), kind_at(resource)
        propagation = "Foreground" if kind is None or kind.companion is None else "Background"
        uid, version = str(metadata["uid"]), str(metadata["resourceVersion"])
        try:
            self._client.delete(
                resource,
                metadata["name"],
                metadata["namespace"],
                uid=uid,
                resource_version=version,
                propagation=propagation,
            )
        except NotFound:
            pass
        self._accepted[uid] = self._clock()
