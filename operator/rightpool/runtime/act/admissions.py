"""The PodTemplates by which new pods of adopted objects get the profiler. Each has one, of its
ProfiledJob's name.

The chart's admission policy reads them, from a cache that each API server has. They are written some time before an
object is resumed as another Revision, and whenever what they are made of changes otherwise; nothing is written while it
does not.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from rightpool.api.placement import Placement
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound
from rightpool.cluster.resources import POD_TEMPLATES
from rightpool.contract import LABEL_JOB
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.facts import ChildFacts, controller_of, meta
from rightpool.runtime.observe.store import Store
from rightpool.workloads.template import InvalidTemplate

AGAIN_SECONDS: Final = 60.0  # until what failed is tried again
SEEN_SECONDS: Final = 2.0  # until the caches of all API servers have what was written
_DIGEST: Final = "rightpool.dev/digest"  # of a PodTemplate: of what was written

logger = logging.getLogger(__name__)


class _Stored(NamedTuple):
    uid: str
    owner: str
    """Uid of its ProfiledJob."""
    digest: str
    at: float
    """When it was written, by the clock."""


class Admissions:
    """Thread-safe where the commands of one job are carried out in one thread at a time."""

    def __init__(
        self,
        client: ClusterClient,
        fence: Fence,
        store: Store,
        children: Children,
        namespaces: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
        *,
        on: bool,
    ) -> None:
        """on: whether the cluster has the policy that reads them. Else none is written, and pods get none."""
        self._client = client
        self._fence = fence
        self._store = store
        self._children = children
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self.on = on
        self._stored: dict[JobKey, _Stored] = {}
        self._term = -1
        self._clock = clock
        self._again: dict[str, float] = {}  # by uid of the object, when what failed is tried again
        self._seen: dict[str, tuple[Any, ...]] = {}  # by uid of the object, what was looked at last

    def follow(self) -> None:
        """Write those of objects that have changed, or whose ProfiledJobs have."""
        if not self.on:
            return
        try:
            if self._term != self._fence.term:
                self._list()
        except ClusterError as error:
            logger.warning("PodTemplates of adopted objects could not be listed: %s", error.message)
            return
        adopted = {child.uid: child for child in self._store.adopted()}
        self._seen = {uid: seen for uid, seen in self._seen.items() if uid in adopted}
        self._again = {uid: at for uid, at in self._again.items() if at > self._clock()}
        for child in adopted.values():
            stored = self._store.job(JobKey(child.namespace, child.job))
            about = child.adopted
            if stored is None or about is None or about.size is None or stored.job.uid != child.owner or child.held:
                continue
            if child.uid in self._again:
                continue
            sees = (child.revision, about, stored.job.spec)
            if self._seen.get(child.uid) != sees and not (stored.job.deleting or stored.job.invalid):
                self._seen[child.uid] = sees
                self._client.submit(self._try, stored.job, child, child.revision, Placement("", *about.size))

    def _try(self, job: Job, child: ChildFacts, revision: int, at: Placement) -> None:
        try:
            self.write(job, child, revision, at)
        except (ClusterError, Fenced) as error:
            logger.info("pods of %s get no profiler yet: %s", child.name, error, extra={"job": str(job.key)})
            self._again[child.uid] = self._clock() + AGAIN_SECONDS
            self._seen.pop(child.uid, None)

    def ready(self, job: Job, child: ChildFacts, revision: int, at: Placement) -> bool:
        """Write it, and say whether pods that are made now go by it. Where it is refused they run without."""
        try:
            self.write(job, child, revision, at)
        except (AlreadyExists, Invalid, Forbidden) as error:
            logger.warning("pods of %s get no profiler: %s", child.name, error.message, extra={"job": str(job.key)})
            return True
        stored = self._stored.get(job.key)
        return stored is None or self._clock() - stored.at >= SEEN_SECONDS

    def write(self, job: Job, child: ChildFacts, revision: int, at: Placement) -> None:
        """Have pods of the object that are made from now on get the profiler, as pods of this Revision. at: how many
        they are, with how many chips."""
        if not self.on:
            return
        try:
            manifest = self._children.admitted(job, child, revision, at)
        except InvalidTemplate as error:
            logger.info("pods of %s get no profiler: %s", child.name, error.message, extra={"job": str(job.key)})
            manifest = None
        key, digest = job.key, "" if manifest is None else _digest(manifest)
        known = self._stored.get(key)
        if digest == ("" if known is None or known.owner != job.uid else known.digest):
            return
        self._fence.leader()
        if manifest is None:
            assert known is not None
            with suppress(NotFound):
                self._client.delete(POD_TEMPLATES, key.name, key.namespace, uid=known.uid)
            self._remember(key, None)
            return
        about = manifest["metadata"]
        annotations = {**about["annotations"], _DIGEST: digest}
        body = {**manifest, "metadata": {**about, "annotations": annotations}}
        try:
            if known is None or known.owner != job.uid:
                stored = self._client.create(POD_TEMPLATES, body)
            else:
                stored = self._client.apply(POD_TEMPLATES, {**body, "metadata": {**body["metadata"], "uid": known.uid}})
        except AlreadyExists:
            there = self._client.get(POD_TEMPLATES, key.name, key.namespace)
            if controller_of(meta(there)) != job.uid:
                self._remember(key, None)
                raise
            self._remember(key, there)
            self.write(job, child, revision, at)
            return
        except (Conflict, NotFound):
            self._remember(key, None)
            raise
        self._remember(key, stored)

    def _list(self) -> None:
        term = self._fence.term
        found = {}
        for namespace in self._namespaces:
            for page in self._client.pages(POD_TEMPLATES, namespace, labels=LABEL_JOB):
                for body in page.items:
                    found[JobKey(str(meta(body)["namespace"]), str(meta(body)["name"]))] = _read(body, -SEEN_SECONDS)
        self._stored, self._seen, self._term = found, {}, term

    def _remember(self, key: JobKey, body: Mapping[str, Any] | None) -> None:
        if body is None:
            self._stored.pop(key, None)
        else:
            self._stored[key] = _read(body, self._clock())


def _read(body: Mapping[str, Any], at: float) -> _Stored:
    about = meta(body)
    return _Stored(str(about["uid"]), controller_of(about), (about.get("annotations") or {}).get(_DIGEST, ""), at)


def _digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]
