"""The store: what the cluster looks like, fed by watches and by our own writes, read by the planner.

Everything is keyed by uid, and of two versions of an object the newer one stays, whoever brought it: an answer to our
own write is put in at once, so that the next cycle does not decide on what is already out of date. What was deleted is
remembered for a while, so that a late answer does not bring it back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    JOBS,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
    Resource,
)
from rightpool.planning.revision import RevisionState
from rightpool.planning.snapshot import JobKey
from rightpool.runtime.facts import ChildFacts, PodFacts, child_facts, meta, node_facts, pod_facts
from rightpool.runtime.jobs import StoredJob, read_job
from rightpool.runtime.revisions import revision_states

WATCHED: Final = (PROFILED_JOBS, ACCELERATOR_POOLS, PLACEMENT_POLICIES, NODES, JOBS, PODS)
TOMBSTONE_SECONDS: Final = 600.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Entry:
    version: int
    key: JobKey  # of the ProfiledJob that it is or belongs to; for cluster-scoped objects ("", name)
    facts: Any
    watched: bool = False  # seen through a watch, and not only listed or written by ourselves


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a complete list told that the watch had not."""

    missed: int
    lost: int


class Store:
    """Thread-safe: watches write from the event loop, the planner reads and writes from its own threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._entries: dict[Resource, dict[str, _Entry]] = {resource: {} for resource in WATCHED}
        self._tombstones: dict[str, float] = {}
        self._jobs: dict[JobKey, str] = {}  # key → uid
        self._children: dict[JobKey, dict[str, ChildFacts]] = {}
        self._pods: dict[JobKey, dict[str, PodFacts]] = {}
        self._revisions: dict[JobKey, Mapping[int, RevisionState]] = {}
        self._changed = threading.Event()
        self.last_event_at = clock()

    # --- what comes in -----------------------------------------------------------------------------------------------

    def observe(self, resource: Resource, kind: str | None, body: Mapping[str, Any]) -> None:
        """One event of a watch. kind: ADDED, MODIFIED, DELETED, or None for what the first list of a watch holds."""
        self.last_event_at = self._clock()
        if kind == "DELETED":
            self._remove(resource, str(meta(body)["uid"]))
        else:
            self._put(resource, body, watched=True)

    def assume(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """The API server's answer to a write of ours."""
        self._put(resource, body, watched=False)

    def reconcile(self, resource: Resource, bodies: Iterable[Mapping[str, Any]], version: str) -> Reconciled:
        """A complete list, as of resource version `version`: what it holds is put in, what it lacks is dropped."""
        listed = set()
        missed = lost = 0
        for body in bodies:
            listed.add(str(meta(body)["uid"]))
            missed += self._put(resource, body, watched=False)
        horizon = _version(version)
        with self._lock:
            gone = [
                uid for uid, entry in self._entries[resource].items() if uid not in listed and entry.version <= horizon
            ]
        for uid in gone:
            lost += self._remove(resource, uid)
        return Reconciled(missed, lost)

    def unwatched(self, resource: Resource) -> int:
        """Objects that were listed and not yet seen by the watch."""
        with self._lock:
            return sum(not entry.watched for entry in self._entries[resource].values())

    def _put(self, resource: Resource, body: Mapping[str, Any], *, watched: bool) -> bool:
        about = meta(body)
        uid, version = str(about["uid"]), _version(about.get("resourceVersion"))
        with self._lock:
            entries = self._entries[resource]
            old = entries.get(uid)
            if old is not None and version and old.version >= version:
                old.watched = old.watched or watched
                return False
            if uid in self._tombstones:
                return False
            facts = _facts(resource, body, old)
            if facts is None:
                if old is not None:
                    self._drop(resource, uid, old)
                return False
            key = _key(facts, about)
            entry = _Entry(version, key, facts, watched or (old is not None and old.watched))
            entries[uid] = entry
            if self._index(resource, uid, entry, old):
                self._changed.set()
            return True

    def _remove(self, resource: Resource, uid: str) -> bool:
        with self._lock:
            now = self._clock()
            self._tombstones[uid] = now
            if len(self._tombstones) > 1000:
                self._tombstones = {u: at for u, at in self._tombstones.items() if now - at < TOMBSTONE_SECONDS}
            old = self._entries[resource].get(uid)
            if old is None:
                return False
            self._drop(resource, uid, old)
            self._changed.set()
            return True

    def _drop(self, resource: Resource, uid: str, entry: _Entry) -> None:
        self._entries[resource].pop(uid, None)
        if resource is PROFILED_JOBS:
            if self._jobs.get(entry.key) == uid:
                del self._jobs[entry.key]
            self._revisions.pop(entry.key, None)
        elif resource in (JOBS, PODS):
            index: dict[JobKey, dict[str, Any]] = self._children if resource is JOBS else self._pods
            members = index.get(entry.key, {})
            members.pop(uid, None)
            if not members:
                index.pop(entry.key, None)
            self._revisions.pop(entry.key, None)

    def _index(self, resource: Resource, uid: str, entry: _Entry, old: _Entry | None) -> bool:
        """Whether a decision may depend on what changed."""
        if resource is PROFILED_JOBS:
            self._jobs[entry.key] = uid
            return old is None or _wakes(entry.facts, old.facts)
        if resource in (JOBS, PODS):
            index: dict[JobKey, dict[str, Any]] = self._children if resource is JOBS else self._pods
            index.setdefault(entry.key, {})[uid] = entry.facts
            if old is not None and old.facts == entry.facts:
                return False
            self._revisions.pop(entry.key, None)
            return True
        return old is None or old.facts != entry.facts

    # --- what goes out -----------------------------------------------------------------------------------------------

    def jobs(self) -> dict[JobKey, StoredJob]:
        """Every ProfiledJob."""
        with self._lock:
            return {entry.key: entry.facts for entry in self._entries[PROFILED_JOBS].values()}

    def job(self, key: JobKey) -> StoredJob | None:
        """One ProfiledJob, as it is now."""
        with self._lock:
            uid = self._jobs.get(key)
            entry = None if uid is None else self._entries[PROFILED_JOBS].get(uid)
            return None if entry is None else entry.facts

    def revisions(self, key: JobKey, uid: str) -> Mapping[int, RevisionState]:
        """What the cluster shows of the Revisions of the ProfiledJob with this uid."""
        with self._lock:
            known = self._revisions.get(key)
            if known is None:
                children = self._children.get(key, {}).values()
                known = revision_states(uid, children, self._pods.get(key, {}).values())
                self._revisions[key] = known
            return known

    def child(self, key: JobKey, uid: str, revision: int) -> ChildFacts | None:
        """The Job of a Revision."""
        with self._lock:
            children = self._children.get(key, {}).values()
            return next((c for c in children if c.revision == revision and c.owner == uid), None)

    def earlier_child(self, key: JobKey, uid: str, revision: int) -> ChildFacts | None:
        """A Job of that Revision that an earlier ProfiledJob of this name has left."""
        with self._lock:
            children = self._children.get(key, {}).values()
            return next((c for c in children if c.revision == revision and c.named and c.owner != uid), None)

    def pods(self, key: JobKey, revision: int) -> list[PodFacts]:
        """The pods of a Revision: those of its Job. Labels alone, which anybody can write, make no pod ours: it would
        be believed what it says of the job, and be sent the Revision's token."""
        with self._lock:
            owner = self._jobs.get(key)
            children = self._children.get(key, {}).values()
            jobs = {child.uid for child in children if child.revision == revision and child.owner == owner}
            return [pod for pod in self._pods.get(key, {}).values() if pod.revision == revision and pod.owner in jobs]

    def all_pods(self) -> list[PodFacts]:
        """The pods of all Revisions."""
        with self._lock:
            return [entry.facts for entry in self._entries[PODS].values()]

    def objects(self, resource: Resource) -> list[Any]:
        """The facts of all objects of a kind."""
        with self._lock:
            return [entry.facts for entry in self._entries[resource].values()]

    def size(self, resource: Resource) -> int:
        """How many objects of a kind there are."""
        with self._lock:
            return len(self._entries[resource])

    def wait(self, timeout: float) -> bool:
        """Wait until something changed that a decision may depend on; whether it did. The next wait is for the next."""
        changed = self._changed.wait(timeout)
        self._changed.clear()
        return changed

    def wake(self) -> None:
        """Let whoever waits go on."""
        self._changed.set()


def _facts(resource: Resource, body: Mapping[str, Any], old: _Entry | None) -> Any:
    if resource is PROFILED_JOBS:
        return read_job(body, None if old is None else old.facts)
    if resource is PODS:
        return pod_facts(body)
    if resource is JOBS:
        return child_facts(body)
    if resource is NODES:
        return node_facts(body)
    return body  # few and small; of a pool it also matters who has written which field


def _key(facts: Any, about: Mapping[str, Any]) -> JobKey:
    if isinstance(facts, StoredJob):
        return facts.state.key
    if isinstance(facts, PodFacts | ChildFacts):
        return JobKey(facts.namespace, facts.job)
    return JobKey("", str(about["name"]))


def _wakes(new: StoredJob, old: StoredJob) -> bool:
    """A status that changed is our own doing; what users change is the spec, the approval, and whether it exists."""
    a, b = new.state, old.state
    return (a.generation, a.approved, a.deleting) != (b.generation, b.approved, b.deleting)


def _version(text: object) -> int:
    """Resource versions of one kind can be compared as numbers (API conventions since Kubernetes 1.35, and etcd's use
    before); 0 for a server that hides them, which makes every event newer than nothing and equal to the last."""
    return int(text) if isinstance(text, str) and text.isdecimal() else 0
