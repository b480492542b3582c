"""The pods of adopted objects.

Those that are older than the adoption have no label of ours, since nobody may patch pods, so that our watch of pods
does not see them, and a watch of all pods of the cluster would be the operator's largest cost. Whatever happens to the
pods of an object is told by a change of its status, which is watched. So its pods are listed when it has changed, those
of many objects in one request; again soon while they do not all run; and some time in any case.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import PODS
from rightpool.runtime.observe.facts import ChildFacts, meta
from rightpool.runtime.observe.relist import Lister
from rightpool.runtime.observe.store import Store

SOON_SECONDS: Final = 10.0  # while pods wait for nodes, pull images, load
LATEST_SECONDS: Final = 300.0
TOGETHER: Final = 50  # objects of one request: their uids have to fit into its path

logger = logging.getLogger(__name__)


class Members:
    """Used by the planner's thread alone."""

    def __init__(
        self, client: Lister, store: Store, progress: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._store = store
        self._progress = progress
        self._clock = clock
        self._due: dict[str, float] = {}  # by uid of the object

    @property
    def labels(self) -> Collection[tuple[str, str]]:
        """Labels, with their values, of the pods that are listed here and so are counted in the store."""
        return {child.adopted.members for child in self._store.adopted() if child.adopted is not None}

    def refresh(self) -> None:
        """List the pods of objects that have changed, or whose time has come."""
        now, changed, adopted = self._clock(), self._store.take_changed_adopted(), self._store.adopted()
        due = {child.uid: 0.0 if child.uid in changed else self._due.get(child.uid, 0.0) for child in adopted}
        self._due = due
        groups: dict[tuple[str, str], list[ChildFacts]] = defaultdict(list)
        for child in adopted:
            if due[child.uid] <= now and child.adopted is not None:
                groups[child.namespace, child.adopted.members[0]].append(child)
        for (namespace, label), children in groups.items():
            for start in range(0, len(children), TOGETHER):
                self._list(namespace, label, children[start : start + TOGETHER], now)
                self._progress()

    def _list(self, namespace: str, label: str, children: Iterable[ChildFacts], now: float) -> None:
        by_value = {child.adopted.members[1]: child for child in children if child.adopted is not None}
        found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        try:
            for page in self._client.pages(PODS, namespace, labels=f"{label} in ({','.join(sorted(by_value))})"):
                for body in page.items:
                    found[(meta(body).get("labels") or {}).get(label, "")].append(body)
        except ClusterError as error:
            logger.warning("pods of adopted objects could not be listed; those seen before stay: %s", error.message)
            self._due |= dict.fromkeys((child.uid for child in by_value.values()), now + SOON_SECONDS)
            return
        for value, child in by_value.items():
            self._store.put_members(child, found[value])
            wait = LATEST_SECONDS if _settled(child, found[value]) else SOON_SECONDS
            self._due[child.uid] = now + wait


def _settled(child: ChildFacts, pods: Collection[Mapping[str, Any]]) -> bool:
    """Whether each pod runs or has ended, or there are none because there are to be none."""
    if not pods:
        return child.ended or child.state.suspended
    return all(_at_rest(body) for body in pods)


def _at_rest(body: Mapping[str, Any]) -> bool:
    status = body.get("status") or {}
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
    return (ready or status.get("phase") in ("Succeeded", "Failed")) and not meta(body).get("deletionTimestamp")
