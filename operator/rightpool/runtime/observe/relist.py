"""Complete lists: at the start, so that no decision uses a part of the fleet only, and later to repair failed watches.

Events alone do not show when the store is complete. It is ready when all watches are open, everything was listed once,
and the watches have delivered what was listed. Afterwards a list every few minutes repairs and logs what a watch has
missed. When a watch is lost the store is no longer ready, until the same conditions hold again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from typing import Final, Protocol

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import ClusterError, Expired
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.runtime.observe.store import Reconciled, Store

CATCH_UP_SECONDS: Final = 15.0  # after this a store that is not ready is listed again

logger = logging.getLogger(__name__)


class Lister(Protocol):
    """The part of ClusterClient that listing uses."""

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]: ...


class Relister:
    """Lists once an interval. `missing` returns the watches that are not open; `progress` is called after each page."""

    def __init__(
        self,
        client: Lister,
        store: Store,
        *,
        interval: float,
        missing: Callable[[], Collection[str]],
        progress: Callable[[], None],
        namespaces: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._store = store
        self._missing = missing
        self._progress = progress
        self._interval = interval
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._clock = clock
        self._listed_at: float | None = None
        self._open = False
        self._lost = False
        self.missed = 0

    @property
    def ready(self) -> bool:
        """Whether the store is complete and all watches are open. May be called by any thread."""
        return self._open and not self._missing()

    def run(self) -> None:
        """List everything if the interval has passed, and update `ready`. Raises ClusterError if a list fails."""
        missing = self._missing()
        if missing and self._open:
            logger.warning("watches are lost, nothing is decided without them", extra={"watches": ", ".join(missing)})
            self._open = False
            self._listed_at = None
            self._lost = True
        if missing and self._lost:
            return  # a list is useful only after the watches have returned
        if self._interval_passed():
            for resource, label in self._store.watched.items():
                self._list(resource, label)
            self._listed_at = self._clock()  # at its end, so that a slow list is not repeated immediately
        if not self._open and not missing and not any(map(self._store.unwatched, self._store.watched)):
            self._open = True
            self._lost = False
            logger.info("the store is complete", extra={"profiledjobs": self._store.size(PROFILED_JOBS)})

    def _interval_passed(self) -> bool:
        interval = self._interval if self._open else CATCH_UP_SECONDS
        return self._listed_at is None or self._clock() - self._listed_at >= interval

    def _list(self, resource: Resource, label: str | None) -> None:
        for attempt in (1, 2, 3):
            try:
                result = self._reconciled(resource, label)
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

    def _reconciled(self, resource: Resource, label: str | None) -> Reconciled:
        """List page by page, because ten thousand whole objects would be most of the operator's peak memory."""
        lists = [
            self._pages(resource, namespace, label)
            for namespace in (self._namespaces if resource.namespaced else (None,))
        ]
        first = [next(pages) for pages in lists]
        # Namespaces are listed in turn. Only objects older than the oldest list can be considered deleted.
        versions = [page.resource_version for page in first]
        oldest = min(versions, key=lambda version: int(version) if version.isdecimal() else 0)
        bodies = (body for page in chain(first, *lists) for body in page.items)
        return self._store.reconcile(resource, bodies, oldest)

    def _pages(self, resource: Resource, namespace: str | None, label: str | None) -> Iterator[Listing]:
        for page in self._client.pages(resource, namespace, labels=label):
            self._progress()
            yield page
