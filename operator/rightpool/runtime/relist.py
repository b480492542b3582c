"""Complete lists: at the start, so that nothing is decided on half of the fleet, and later, in case a watch failed.

Events alone never say "that was all". The gate opens when everything was listed once and the watches have caught up
with the list; from then on a list every few minutes repairs what a silent watch has missed, and tells that it has.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, Protocol

from rightpool.cluster.client import Listing
from rightpool.cluster.errors import ClusterError, Expired
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS, Resource
from rightpool.contract import LABEL_JOB
from rightpool.runtime.store import WATCHED, Reconciled, Store

CATCH_UP_SECONDS: Final = 15.0  # a watch that has not brought what was listed by then is listed against again

logger = logging.getLogger(__name__)


class Lister(Protocol):
    """What is needed of the cluster."""

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]: ...


class Relister:
    """Lists when it is due; `ready` once the store is complete."""

    def __init__(
        self,
        client: Lister,
        store: Store,
        *,
        interval: float,
        namespaces: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._store = store
        self._interval = interval
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._clock = clock
        self._listed_at: float | None = None
        self._open = False
        self.missed = 0

    @property
    def ready(self) -> bool:
        """Whether the store holds everything. Once open the gate stays open."""
        if not self._open and self._listed_at is not None:
            self._open = not any(self._store.unwatched(resource) for resource in WATCHED)
            if self._open:
                logger.info("the store is complete", extra={"profiledjobs": self._store.size(PROFILED_JOBS)})
        return self._open

    def run(self) -> None:
        """List everything if that is due. Raises ClusterError where it could not be done to the end."""
        due = self._interval if self._open else CATCH_UP_SECONDS
        now = self._clock()
        if self._listed_at is not None and now - self._listed_at < due:
            return
        for resource in WATCHED:
            self._list(resource)
        self._listed_at = self._clock()  # from its end: a list that takes long must not be due again at once

    def _list(self, resource: Resource) -> None:
        for attempt in (1, 2, 3):
            try:
                result = self._reconciled(resource)
                break
            except Expired as error:
                if attempt == 3:
                    raise ClusterError(f"listing {resource.plural}: {error.message}") from error
        if self._open and (result.missed or result.lost):
            self.missed += result.missed + result.lost
            logger.warning(
                "a list brought what the watch had not",
                extra={"resource": resource.plural, "missed": result.missed, "gone": result.lost},
            )

    def _reconciled(self, resource: Resource) -> Reconciled:
        """Page by page: ten thousand whole objects at once would be most of the memory that the operator ever needs."""
        labels = LABEL_JOB if resource in (JOBS, PODS) else None
        lists = [
            self._client.pages(resource, namespace, labels=labels)
            for namespace in (self._namespaces if resource.namespaced else (None,))
        ]
        first = [next(pages) for pages in lists]
        # Several namespaces are listed one after the other: only what is older than the first list can be called gone.
        versions = [page.resource_version for page in first]
        oldest = min(versions, key=lambda version: int(version) if version.isdecimal() else 0)
        bodies = (body for page in chain(first, *lists) for body in page.items)
        return self._store.reconcile(resource, bodies, oldest)
