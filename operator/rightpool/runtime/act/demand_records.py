"""The records of demand of all servers, in one ConfigMap each in the operator's namespace.

A record is extended by each reading, and stored half an hour after it was stored last, a few in each cycle: what is
lost when the process dies is read again from Prometheus, where there is one. Where it can't be read at the start,
nothing is stored over it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.contract import LABEL_DEMAND
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import DemandRecord
from rightpool.profiles.served import ServedWindow
from rightpool.reporting.demand_object import demand_object, read_demand, recorded_server
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.facts import meta

SAVE_SECONDS: Final = 1800.0
"""Between two writes of one record."""
SAVES_AT_ONCE: Final = 4
_RETRY_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    """A record and the object that it is stored in."""

    record: DemandRecord = field(default_factory=DemandRecord)
    version: str | None = None
    """Of the object as it was last read or written; None where there is none."""
    saved_at: float = -math.inf
    """Unix seconds."""
    dirty: bool = False


class DemandRecords:
    """Used by the planner's thread alone; writes run on the client's threads."""

    def __init__(self, client: ClusterClient, fence: Fence, namespace: str) -> None:
        self._client = client
        self._fence = fence
        self._namespace = namespace
        self._kept: dict[JobKey, _Kept] | None = None
        self._saving: dict[JobKey, Future[str | None]] = {}
        self._load_at = -math.inf
        self._problem = ""

    def follow(self) -> None:
        """This process does not lead: another one records."""
        self._kept, self._load_at = None, -math.inf
        self._saving.clear()

    def of(self, key: JobKey) -> DemandRecord | None:
        """What is known of a server; None before the records were read."""
        return None if self._kept is None else self._kept.setdefault(key, _Kept()).record

    def cycle(self, servers: AbstractSet[JobKey], windows: Mapping[JobKey, ServedWindow], now: float) -> None:
        """Extend the records by what was read, and store those that are due. servers: all that there are."""
        self._collect()
        if self._kept is None and servers and now >= self._load_at:
            self._load(servers, now)
        if self._kept is None:
            return
        for key in self._kept.keys() - servers:
            del self._kept[key]
        for key, window in windows.items():
            if key in servers and window.complete:
                kept = self._kept.setdefault(key, _Kept(saved_at=now))  # of what is young nothing is lost
                kept.record.extend(window)
                kept.dirty = True
        self._save(now)

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._collect(timeout=2.0)
        for key, kept in (self._kept or {}).items():
            if kept.dirty and key not in self._saving:
                self._submit(key, kept)
        self._collect(timeout=2.0)

    def _load(self, servers: AbstractSet[JobKey], now: float) -> None:
        self._load_at = now + _RETRY_SECONDS
        try:
            objects = self._client.list_all(CONFIG_MAPS, self._namespace, labels=LABEL_DEMAND)
        except ClusterError as error:
            self._report(f"the records of demand can't be read, and none is kept: {error.message}")
            return
        kept: dict[JobKey, _Kept] = {}
        problem = ""
        for body in objects:
            about, key = meta(body), recorded_server(body)
            if key is None or key not in servers:
                continue
            version = str(about.get("resourceVersion"))
            try:
                kept[key] = _Kept(read_demand(body), version, now)
            except ValueError as error:
                # Of it nothing can be used: a new one is written over it.
                problem = f"ConfigMap {self._namespace}/{about.get('name')} can't be read and begins anew: {error}"
                kept[key] = _Kept(version=version, saved_at=now)
        self._kept = kept
        self._report(problem)

    def _save(self, now: float) -> None:
        assert self._kept is not None
        due = [
            (kept.saved_at, key)
            for key, kept in self._kept.items()
            if kept.dirty and key not in self._saving and now - kept.saved_at >= SAVE_SECONDS
        ]
        for _, key in sorted(due)[: max(0, SAVES_AT_ONCE - len(self._saving))]:
            self._kept[key].saved_at = now
            self._submit(key, self._kept[key])

    def _submit(self, key: JobKey, kept: _Kept) -> None:
        kept.dirty = False
        self._saving[key] = self._client.submit(
            self._write, demand_object(self._namespace, key, kept.record, kept.version)
        )

    def _write(self, body: dict[str, Any]) -> str | None:
        """The object's new version; None where it was not written."""
        try:
            self._fence.leader()
            new = body["metadata"].get("resourceVersion") is None
            answer = self._client.create(CONFIG_MAPS, body) if new else self._client.replace(CONFIG_MAPS, body)
        except Fenced:
            return None
        return str(meta(answer).get("resourceVersion"))

    def _collect(self, timeout: float = 0.0) -> None:
        for key, future in list(self._saving.items()):
            if timeout == 0.0 and not future.done():
                continue
            del self._saving[key]
            try:
                version = future.result(timeout)
            except (Conflict, AlreadyExists, NotFound, TimeoutError):
                # Somebody else has written it, or whether it was written is not known: what is stored is right.
                self._kept, self._load_at = None, -math.inf
                return
            except ClusterError as error:
                self._report(f"the record of demand of {key} can't be stored: {error.message}")
                version = None
            kept = (self._kept or {}).get(key)
            if kept is None:
                continue
            if version is None:
                kept.dirty = True  # tried again when it is due again
            else:
                kept.version = version

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            logger.warning("demand: %s", problem)
        self._problem = problem
