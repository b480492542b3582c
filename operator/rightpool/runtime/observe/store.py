"""The store: the state of the cluster, updated by watches and by our own writes, read by the planner.

Objects are keyed by uid. Of two versions of an object the newer one is kept, whether it came from a watch, a list or
the response to a write. Responses are stored at once, so that the next cycle does not decide on outdated state. Deleted
uids are kept as tombstones for a while, so that a late response does not restore the object. A newer version does: to a
watch by label an object is deleted when its label is taken off, and new when it is put on again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.api.value_object import value_object
from rightpool.cluster.resources import NAMESPACES, NODES, PERSISTENT_VOLUMES, PODS, PROFILED_JOBS
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.reporting.stored_job import StoredJob, edited_by_user, read_job
from rightpool.runtime.observe.facts import (
    ChildFacts,
    PodFacts,
    as_member,
    child_facts,
    gives_users,
    member_facts,
    meta,
    node_facts,
    pod_facts,
)
from rightpool.runtime.observe.revisions import revision_states
from rightpool.runtime.observe.stand_ins import StandIns
from rightpool.runtime.observe.volumes import volume_facts
from rightpool.runtime.observe.watched import watched
from rightpool.workloads.kinds.registry import kind_at
from rightpool.workloads.template import InvalidTemplate

TOMBSTONE_SECONDS: Final = 600.0


@dataclass(slots=True)
class _Entry:
    version: int
    key: JobKey
    """Of the ProfiledJob that it is or belongs to; ("", name) for cluster-scoped objects."""
    facts: Any
    watched: bool = False
    """Whether a watch has delivered it, not only a list or our own write."""
    member_of: str | None = None
    """Uid of the adopted object whose pod it is, of a pod that was listed with the others of that."""


@value_object
class _Tombstone:
    at: float
    """When it was put up."""
    version: int
    """The newest version at which the object was gone; 0 where that is not known."""


@value_object
class Reconciled:
    """What a complete list showed that the watch had not."""

    missed: int
    """Objects that are new or newer in the list."""
    lost: int
    """Stored objects that are not in the list."""


class Store:
    """Thread-safe: watches write from the event loop, the planner reads and writes from its own threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._watched: Mapping[Resource, str | None] = watched()
        self._entries: dict[Resource, dict[str, _Entry]] = {resource: {} for resource in self._watched}
        self._tombstones: dict[str, _Tombstone] = {}
        self._jobs: dict[JobKey, str] = {}  # key → uid
        self._children: dict[JobKey, dict[str, ChildFacts]] = {}
        self._pods: dict[JobKey, dict[str, PodFacts]] = {}
        self._revisions: dict[JobKey, tuple[str, Mapping[int, RevisionState]]] = {}  # with the job's uid
        self._own_pods: dict[JobKey, tuple[str | None, int, tuple[PodFacts, ...]]] = {}  # of the Revision asked last
        self._adopted: dict[str, ChildFacts] = {}  # by uid
        self._stand_ins = StandIns()
        self._changed_adopted: set[str] = set()  # of which a newer version was seen
        self._disruptions: dict[str, float] = {}  # when a pod was last to be evicted, by its child's uid
        self._listed: dict[Resource, tuple[Any, ...]] = {}  # the facts of all objects, until one changes
        self._news: set[JobKey] = set()
        self._changed = threading.Event()

    # --- updates -----------------------------------------------------------------------------------------------------

    def observe(self, resource: Resource, kind: str | None, body: Mapping[str, Any]) -> None:
        """Apply one event of a watch. `kind` is ADDED, MODIFIED or DELETED, or None for the watch's first list."""
        if kind == "DELETED":
            self._remove(resource, str(meta(body)["uid"]), _version(meta(body).get("resourceVersion")))
        else:
            self._put(resource, body, watched=True)

    def assume(self, resource: Resource, body: Mapping[str, Any]) -> None:
        """Apply the API server's response to our own write."""
        self._put(resource, body, watched=False, own=True)

    def reconcile(self, resource: Resource, bodies: Iterable[Mapping[str, Any]], version: str) -> Reconciled:
        """Apply a complete list as of resource version `version`: update its objects, and drop those it lacks."""
        listed = set()
        missed = lost = 0
        for body in bodies:
            listed.add(str(meta(body)["uid"]))
            missed += self._put(resource, body, watched=False)
        horizon = _version(version)
        with self._lock:
            gone = [
                uid
                for uid, entry in self._entries[resource].items()
                if uid not in listed and entry.version <= horizon and entry.member_of is None
            ]
        for uid in gone:
            lost += self._remove(resource, uid, horizon)
        return Reconciled(missed, lost)

    def put_members(self, child: ChildFacts, bodies: Iterable[Mapping[str, Any]]) -> None:
        """All pods of an adopted object, as they were listed."""
        found = ((member_facts(body, child), _version(meta(body).get("resourceVersion"))) for body in bodies)
        listed = [(facts, version) for facts, version in found if facts is not None]
        key = JobKey(child.namespace, child.job)
        with self._lock:
            entries, known, uids = self._entries[PODS], self._pods.get(key, {}), {facts.uid for facts, _ in listed}
            for uid in [uid for uid in known if uid not in uids and entries[uid].member_of == child.uid]:
                self._drop(PODS, uid, entries[uid])
                self._changed.set()
            for facts, version in listed:
                old = entries.get(facts.uid)
                # Pods with the profiler have our label, so that the watch of pods may know more of them by now.
                if facts.uid in self._tombstones or (old and old.version > version and old.facts.owner == child.uid):
                    continue
                kept = facts if old is None or old.facts != facts else old.facts
                entries[facts.uid] = entry = _Entry(version, key, kept, watched=True, member_of=child.uid)
                if kept is facts:
                    self._listed.pop(PODS, None)
                if self._index(PODS, facts.uid, entry, old):
                    self._changed.set()

    @property
    def watched(self) -> Mapping[Resource, str | None]:
        """The watched resources with the label that selects their objects, without those of kinds that are off."""
        return self._watched

    def turn_off(self, resources: Collection[Resource]) -> None:
        """Of kinds that the cluster does not have: nothing is to be listed or watched."""
        self._watched = {resource: label for resource, label in self._watched.items() if resource not in resources}

    def unwatched(self, resource: Resource) -> int:
        """The number of objects that were listed but not yet delivered by the watch."""
        with self._lock:
            return sum(not entry.watched for entry in self._entries[resource].values())

    def _put(self, resource: Resource, body: Mapping[str, Any], *, watched: bool, own: bool = False) -> bool:
        metadata = meta(body)
        uid, version = str(metadata["uid"]), _version(metadata.get("resourceVersion"))
        with self._lock:
            entries = self._entries[resource]
            old = entries.get(uid)
            if old is not None and version and old.version >= version:
                old.watched = old.watched or watched
                return False
            gone = self._tombstones.get(uid)
            if gone is not None and (not gone.version or version <= gone.version):
                return False
            facts = _facts(resource, body, old, own=own)
            if isinstance(facts, StoredJob):
                if self._stand_ins.see(facts.job):
                    self._outdate(facts.job.key)
                facts = self._with_workload(facts)
            if isinstance(facts, PodFacts):
                listed = () if old is None or old.member_of not in self._adopted else (self._adopted[old.member_of],)
                facts = as_member(body, facts, (*listed, *self._children.get(_key(facts, metadata), {}).values()))
                facts = old.facts if old is not None and old.facts == facts else facts
            if facts is None:
                if old is not None:
                    self._drop(resource, uid, old)
                return False
            self._tombstones.pop(uid, None)
            key = _key(facts, metadata)
            entry = _Entry(version, key, facts, watched or (old is not None and old.watched))
            entries[uid] = entry
            if old is None or old.facts is not facts:
                self._listed.pop(resource, None)
            if self._index(resource, uid, entry, old):
                self._changed.set()
            return True

    def _remove(self, resource: Resource, uid: str, version: int) -> bool:
        """version: at which it is gone."""
        with self._lock:
            old = self._entries[resource].get(uid)
            if old is not None and version and old.version > version:
                return False  # it has come back since
            now = self._clock()
            self._tombstones[uid] = _Tombstone(now, version)
            if len(self._tombstones) > 1000:
                self._tombstones = {u: t for u, t in self._tombstones.items() if now - t.at < TOMBSTONE_SECONDS}
            if old is None:
                return False
            self._drop(resource, uid, old)
            self._changed.set()
            return True

    def _drop(self, resource: Resource, uid: str, entry: _Entry) -> None:
        self._entries[resource].pop(uid, None)
        self._listed.pop(resource, None)
        if resource is PROFILED_JOBS:
            if self._jobs.get(entry.key) == uid:
                del self._jobs[entry.key]
                self._stand_ins.forget(entry.key)
            self._outdate(entry.key)
        elif (index := self._index_of(resource)) is not None:
            self._disruptions.pop(uid, None)
            self._leave(index, uid, entry.key)
            if self._adopted.pop(uid, None) is not None:
                self._changed_adopted.discard(uid)
                self.put_members(entry.facts, ())

    def _leave(self, index: dict[JobKey, dict[str, Any]], uid: str, key: JobKey) -> None:
        """A pod or child is none of this ProfiledJob any more."""
        members = index.get(key, {})
        members.pop(uid, None)
        if not members:
            index.pop(key, None)
        self._outdate(key)

    def _outdate(self, key: JobKey) -> None:
        """Something about the ProfiledJob has changed that its Revisions and pods are derived from."""
        self._revisions.pop(key, None)
        self._own_pods.pop(key, None)
        self._news.add(key)

    def _index(self, resource: Resource, uid: str, entry: _Entry, old: _Entry | None) -> bool:
        """Update the indexes; whether a decision may depend on the change."""
        if resource is PROFILED_JOBS:
            self._jobs[entry.key] = uid
            return old is None or edited_by_user(entry.facts, old.facts)
        if (index := self._index_of(resource)) is not None:
            if old is not None and old.key != entry.key:
                self._leave(index, uid, old.key)  # whoever may edit a pod may give it another label
            index.setdefault(entry.key, {})[uid] = entry.facts
            if isinstance(entry.facts, ChildFacts):
                self._see_adopted(uid, entry.facts, None if old is None else old.facts)
            if resource is PODS and entry.facts.disrupted_at is not None and entry.facts.owner:
                # An evicted pod is gone before anybody asks why its peers have failed.
                known = self._disruptions.get(entry.facts.owner, 0.0)
                self._disruptions[entry.facts.owner] = max(known, entry.facts.disrupted_at)
            if old is not None and old.facts == entry.facts:
                return False
            self._outdate(entry.key)
            return True
        return old is None or old.facts != entry.facts

    def _see_adopted(self, uid: str, child: ChildFacts, old: ChildFacts | None) -> None:
        """An adopted object has changed. So may its pods have, and the workload of its ProfiledJob."""
        if child.adopted is None:
            self._adopted.pop(uid, None)
            return
        self._adopted[uid] = child
        self._changed_adopted.add(uid)
        job_uid = self._jobs.get(JobKey(child.namespace, child.job))
        entry = None if job_uid is None else self._entries[PROFILED_JOBS].get(job_uid)
        if entry is not None and (old is None or old.adopted is not child.adopted):
            entry.facts = self._with_workload(entry.facts)
            self._listed.pop(PROFILED_JOBS, None)

    def _with_workload(self, stored: StoredJob) -> StoredJob:
        """A ProfiledJob that names an object, with the workload of that, as far as it was seen."""
        job = stored.job
        if job.spec.workload_ref is None:
            return stored
        child = self.adopted_by(job.key, job.uid)
        about = None if child is None else child.adopted
        if about is None or about.workload is None:
            return stored
        if about.workload is job.spec.workload and about.able == job.able:
            return stored
        try:
            return stored.running(about.workload, about.able)
        except InvalidTemplate:
            return stored  # who adopts it says so

    def _index_of(self, resource: Resource) -> dict[JobKey, dict[str, Any]] | None:
        """The index by ProfiledJob, for pods and children."""
        if resource is PODS:
            return self._pods
        return self._children if kind_at(resource) is not None else None

    # --- queries -----------------------------------------------------------------------------------------------------

    def jobs(self) -> dict[JobKey, StoredJob]:
        """Every ProfiledJob."""
        with self._lock:
            return {entry.key: entry.facts for entry in self._entries[PROFILED_JOBS].values()}

    def job(self, key: JobKey) -> StoredJob | None:
        """The current state of one ProfiledJob."""
        with self._lock:
            uid = self._jobs.get(key)
            entry = None if uid is None else self._entries[PROFILED_JOBS].get(uid)
            return None if entry is None else entry.facts

    def revisions(self, key: JobKey, uid: str) -> Mapping[int, RevisionState]:
        """The observed Revisions of the ProfiledJob with this uid."""
        with self._lock:
            owner, known = self._revisions.get(key, (None, {}))
            # A cycle's picture may be older than the store: of a job that was deleted and created again since.
            if owner != uid:
                children = self._stand_ins.among(key, self._children.get(key, {}).values())
                known = revision_states(uid, children, self._pods.get(key, {}).values(), self._disruptions)
                self._revisions[key] = (uid, known)
            return known

    def child(self, key: JobKey, uid: str, revision: int) -> ChildFacts | None:
        """The child of a Revision."""
        with self._lock:
            children = self._stand_ins.among(key, self._children.get(key, {}).values())
            return next((c for c in children if c.revision == revision and c.owner == uid), None)

    def earlier_child(self, key: JobKey, uid: str, revision: int) -> ChildFacts | None:
        """A child of this Revision number that belongs to an earlier, deleted ProfiledJob of this name."""
        with self._lock:
            children = self._stand_ins.among(key, self._children.get(key, {}).values())
            return next((c for c in children if c.revision == revision and c.named and c.owner != uid), None)

    def pods(self, key: JobKey, revision: int) -> Sequence[PodFacts]:
        """The scaled pods of a Revision, which have the profiler: those that its child controls. The very same object
        while nothing about them changes.

        Labels are not sufficient, because any user can write them: the operator would trust a foreign pod's metrics and
        send the Revision's token to it.
        """
        with self._lock:
            owner = self._jobs.get(key)
            known = self._own_pods.get(key)
            if known is not None and known[0] == owner and known[1] == revision:
                return known[2]
            children = self._stand_ins.among(key, self._children.get(key, {}).values())
            roles = {c.members: c.state.role for c in children if c.revision == revision and c.owner == owner}
            pods = self._pods.get(key, {}).values()
            found = tuple(pod for pod in pods if pod.revision == revision and pod.role == roles.get(pod.owner))
            self._own_pods[key] = (owner, revision, found)
            return found

    def adopted_by(self, key: JobKey, uid: str) -> ChildFacts | None:
        """The object that the ProfiledJob with this uid names, where it was found."""
        with self._lock:
            children = self._stand_ins.among(key, self._children.get(key, {}).values())
            return next((c for c in children if c.adopted is not None and c.owner == uid), None)

    def adopted(self) -> tuple[ChildFacts, ...]:
        """The objects that ProfiledJobs name."""
        with self._lock:
            return tuple(self._adopted.values())

    def take_changed_adopted(self) -> set[str]:
        """Uids of the adopted objects of which a newer version was seen since this was asked last."""
        with self._lock:
            changed, self._changed_adopted = self._changed_adopted, set()
            return changed

    def all_pods(self) -> tuple[PodFacts, ...]:
        """The pods of all Revisions. The very same object while nothing about them changes."""
        return self.objects(PODS)

    def tell(self, key: JobKey) -> None:
        """Something was learned about the ProfiledJob that is in no object of its own."""
        with self._lock:
            self._news.add(key)

    def take_news(self) -> set[JobKey]:
        """The ProfiledJobs of which a child or a pod has changed, or that `tell` named, since this was asked last."""
        with self._lock:
            news, self._news = self._news, set()
            return news

    def objects(self, resource: Resource) -> tuple[Any, ...]:
        """The facts of all objects of a resource. The very same object while nothing about them changes: who has
        looked at all of them need not look again."""
        with self._lock:
            known = self._listed.get(resource)
            if known is None:
                known = self._listed[resource] = tuple(entry.facts for entry in self._entries[resource].values())
            return known

    def gives_users(self, namespace: str) -> bool:
        """Whether the namespace gives its containers their users, and takes no other."""
        return namespace in self.objects(NAMESPACES)

    def size(self, resource: Resource) -> int:
        """The number of objects of a resource."""
        with self._lock:
            return len(self._entries[resource])

    def wait(self, timeout: float) -> bool:
        """Wait for a change since the last wait that a decision may depend on; False if the timeout passed first."""
        changed = self._changed.wait(timeout)
        self._changed.clear()
        return changed

    def wake(self) -> None:
        """End the current wait."""
        self._changed.set()


def _facts(resource: Resource, body: Mapping[str, Any], old: _Entry | None, *, own: bool) -> Any:
    if resource is PROFILED_JOBS:
        return read_job(body, None if old is None else old.facts, own=own)
    if resource is PODS or resource is NODES:
        facts = pod_facts(body) if resource is PODS else node_facts(body)
        # A kubelet writes often, and hardly ever what is looked at here: who sees the same object need not look again.
        return old.facts if old is not None and old.facts == facts else facts
    if resource is PERSISTENT_VOLUMES:
        return volume_facts(body)
    if resource is NAMESPACES:
        return gives_users(body)
    kind = kind_at(resource)
    if kind is not None:
        return child_facts(kind, body, None if old is None else old.facts)
    return body  # few and small; managedFields of a pool are needed too


def _key(facts: Any, metadata: Mapping[str, Any]) -> JobKey:
    if isinstance(facts, StoredJob):
        return facts.job.key
    if isinstance(facts, PodFacts | ChildFacts):
        return JobKey(facts.namespace, facts.job)
    return JobKey("", str(metadata["name"]))


def _version(text: object) -> int:
    """A resource version as a number; 0 if it is not one, and then every event replaces the stored object.

    Versions of one resource can be compared as numbers (API conventions since Kubernetes 1.35, and etcd's use before).
    """
    return int(text) if isinstance(text, str) and text.isdecimal() else 0
