"""Chips in use by node and resource: those that our jobs' pods and all other pods request, and those that claims have.

Chips that nodes offer as devices are counted here, too, since they are listed as seldom.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound
from rightpool.cluster.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from rightpool.contract import LABEL_JOB
from rightpool.hardware.devices import Devices, devices, resources_of
from rightpool.hardware.node import NodeResource
from rightpool.runtime.observe.facts import PodFacts, meta, requested
from rightpool.runtime.observe.relist import Lister

# Seconds for which a count stays where pods may not be listed any more: rights that are changed come back by then.
_KEPT_SECONDS: Final = 600.0
# Pods that have ended use no chips, and may be many.
_ALIVE: Final = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="

logger = logging.getLogger(__name__)


class ChipUsage:
    """Counts other pods once an interval, and our jobs' pods from the store at every call."""

    def __init__(
        self,
        client: Lister,
        *,
        interval: float,
        namespaces: Sequence[str] = (),
        members: Callable[[], Collection[tuple[str, str]]] = tuple,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Pods are listed in `namespaces`, in all if empty. Chips of pods elsewhere count as free. members: labels of
        pods of adopted objects, which are the jobs' own."""
        self._members = members
        self._client = client
        self.whole = not namespaces
        """Whether the pods of all namespaces are counted."""
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._interval = interval
        self._clock = clock
        self._tried_at: float | None = None
        self._counted_at: float | None = None
        self.devices = Devices()
        """Chips that are devices. The very same object while they do not change."""
        self.foreign: Mapping[NodeResource, int] = {}
        """Chips that other pods request, by the last count. The very same object while that does not change."""
        self.refused: str | None = None
        """What the API server says, where pods may not be listed and no count is kept."""

    def refresh(self, resources: Collection[str]) -> bool:
        """Count devices and other pods if the interval has passed; whether anything changed.

        resources: of all pools. Those of devices are counted, too, since there is no pool before they are seen.
        """
        now = self._clock()
        if self._tried_at is not None and now - self._tried_at < self._interval:
            return False
        self._tried_at = now
        before, self.devices = self.devices, self._list_devices()
        wanted = {*resources, *(resource for _, resource in self.devices.offered)}
        counted = self._count_pods(wanted, now) if wanted else False
        return counted or self.devices is not before

    def _list_devices(self) -> Devices:
        """What was listed before stays where the API server gives no answer."""
        try:
            resources = resources_of(self._all(DEVICE_CLASSES, None))
            if not resources:
                found = Devices()
            else:
                slices = list(self._all(RESOURCE_SLICES, None))
                claims = (body for namespace in self._namespaces for body in self._all(RESOURCE_CLAIMS, namespace))
                found = devices(resources, slices, claims)
        except (NotFound, Forbidden) as error:
            if self.devices.offered:
                logger.warning("chips that are devices are not counted any more: %s", error.message)
            found = Devices()
        except ClusterError as error:
            logger.warning("devices could not be listed; what was listed before stays: %s", error.message)
            return self.devices
        return self.devices if found == self.devices else found

    def _all(self, resource: Resource, namespace: str | None) -> Iterator[Mapping[str, Any]]:
        for page in self._client.pages(resource, namespace):
            yield from page.items

    def _count_pods(self, resources: Collection[str], now: float) -> bool:
        """Whether the count changed."""
        counted: Counter[NodeResource] = Counter()
        members = frozenset(self._members())
        try:
            for namespace in self._namespaces:
                for page in self._client.pages(PODS, namespace, labels=f"!{LABEL_JOB}", fields=_ALIVE):
                    _count(page, resources, members, counted)
        except Forbidden as error:
            return self._refuse(error.message, now)
        except ClusterError as error:
            logger.warning("chips of other pods could not be counted; the last count stays: %s", error.message)
            return False
        refused, self._counted_at, self.refused = self.refused, now, None
        if counted == self.foreign:
            return refused is not None
        self.foreign = dict(counted)
        return True

    def _refuse(self, message: str, now: float) -> bool:
        """Pods may not be listed. Whether that ends the last count."""
        kept = self._counted_at is not None and now - self._counted_at < _KEPT_SECONDS
        if kept or self.refused is not None:
            return False
        logger.warning("chips of other pods are not counted, free chips may be too high: %s", message)
        self.foreign, self.refused = {}, message
        return True

    def by_node(self, pods: Iterable[PodFacts], resources: Collection[str]) -> dict[NodeResource, int]:
        """Chips that pods request and claims have, by node and resource."""
        counted: Counter[NodeResource] = Counter(self.foreign)
        counted.update(self.devices.claimed)
        for pod in pods:
            if not pod.done and pod.node is not None:
                for resource, amount in pod.chips:
                    if resource in resources:
                        counted[pod.node, resource] += amount
        return dict(counted)


def _count(
    page: Listing, resources: Collection[str], members: frozenset[tuple[str, str]], counted: Counter[NodeResource]
) -> None:
    for body in page.items:
        if members and not members.isdisjoint((meta(body).get("labels") or {}).items()):
            continue
        spec = body.get("spec") or {}
        for resource, amount in requested(spec):
            if resource in resources and amount:
                counted[str(spec.get("nodeName")), resource] += amount
