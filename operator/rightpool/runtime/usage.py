"""Chips in use, by node: what the pods of our jobs request, and what everybody else's do."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from rightpool.cluster.client import Listing
from rightpool.cluster.errors import ClusterError, Forbidden
from rightpool.cluster.resources import PODS, Resource
from rightpool.contract import LABEL_JOB
from rightpool.runtime.facts import PodFacts, requested

# Pods that have ended hold nothing, and there may be many of them.
_ALIVE: Final = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="

logger = logging.getLogger(__name__)


class Lister(Protocol):
    """What is needed of the cluster."""

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterable[Listing]: ...


class ChipUsage:
    """Other people's pods are counted every now and then, ours from the store at every call.

    namespaces: whose pods may be listed, all where empty. Chips that pods elsewhere hold are then taken for free.
    whole: whether no pod is left out.
    """

    def __init__(
        self,
        client: Lister,
        *,
        interval: float,
        namespaces: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self.whole = not namespaces
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._interval = interval
        self._clock = clock
        self._counted_at: float | None = None
        self._foreign: Mapping[str, int] = {}
        self._forbidden = False

    def refresh(self, resources: Collection[str]) -> bool:
        """Count other people's pods if that is due; whether the count is another one now. resources: of all pools."""
        now = self._clock()
        if self._counted_at is not None and now - self._counted_at < self._interval:
            return False
        self._counted_at = now
        if not resources:
            return False
        counted: Counter[str] = Counter()
        try:
            for namespace in self._namespaces:
                for page in self._client.pages(PODS, namespace, labels=f"!{LABEL_JOB}", fields=_ALIVE):
                    _count(page, resources, counted)
        except Forbidden as error:
            if not self._forbidden:
                logger.warning("chips of other pods are not counted, free chips may be too high: %s", error.message)
            self._forbidden = True
            return False
        except ClusterError as error:
            logger.warning("chips of other pods could not be counted; the last count stays: %s", error.message)
            return False
        self._forbidden = False
        changed = counted != self._foreign
        self._foreign = dict(counted)
        return changed

    def by_node(self, pods: Iterable[PodFacts], resources: Collection[str]) -> dict[str, int]:
        """Chips that pods request, by node name."""
        counted: Counter[str] = Counter(self._foreign)
        for pod in pods:
            if not pod.done and pod.node is not None:
                counted[pod.node] += sum(amount for name, amount in pod.chips if name in resources)
        return dict(counted)


def _count(page: Listing, resources: Collection[str], counted: Counter[str]) -> None:
    for body in page.items:
        spec = body.get("spec") or {}
        chips = sum(amount for name, amount in requested(spec) if name in resources)
        if chips:
            counted[str(spec.get("nodeName"))] += chips
