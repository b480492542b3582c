"""What is kept in ConfigMaps of the operator's own namespace, one for each of many: read once by who begins to lead,
and written by that process alone.

Where somebody else has written one, or whether a write has happened is not known, what is stored is right, and all of
them are read again.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.observe.facts import meta

FLUSH_SECONDS: Final = 2.0

logger = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form(Generic[K, V]):
    """How one kind of records is stored."""

    what: str
    """In messages, with its article."""
    label: str
    """Of its objects."""
    key_of: Callable[[Body], K | None]
    """What an object is about; None where it does not say."""
    write: Callable[[str, K, V, str | None], dict[str, Any]]
    """The object, from the operator's namespace, the key, the value and the version that it replaces."""
    read: Callable[[Body], V]
    """What an object holds. Raises ValueError where it can't be read."""
    anew: Callable[[], V] | None = None
    """What takes the place of one that can't be read. None: somebody may still repair it, and none is kept before."""


@dataclass(slots=True)
class MapEntry(Generic[V]):
    """A value, and the object that it is stored in."""

    value: V
    """What is kept."""
    version: str | None = None
    """Of the object as it was last read or written; None where there is none."""
    saved_at: float = -math.inf
    """Unix seconds of the last write, or read."""
    dirty: bool = False
    """Whether it holds what is not stored."""
    urgent: bool = False
    """Whether that is stored nowhere else, or a write of it has failed."""


class ConfigMaps(Generic[K, V]):
    """Used by one thread; writes run on the client's threads."""

    def __init__(
        self, client: ClusterClient, fence: Fence, namespace: str, form: Form[K, V], *, writes_at_once: int
    ) -> None:
        self._client = client
        self._fence = fence
        self._namespace = namespace
        self._form = form
        self._most = writes_at_once
        self._writing: dict[K, Future[str | None]] = {}
        self._problem = ""
        self.kept: dict[K, MapEntry[V]] | None = None
        """None before they were read."""

    def follow(self) -> None:
        """This process does not lead: another one writes."""
        self.kept = None
        self._writing.clear()

    def load(self, now: float) -> None:
        """Read all of them."""
        try:
            objects = self._client.list_all(CONFIG_MAPS, self._namespace, labels=self._form.label)
        except ClusterError as error:
            self._report(f"{self._form.what} can't be read, and none is kept: {error.message}")
            return
        kept: dict[K, MapEntry[V]] = {}
        problem = ""
        for body in objects:
            about, key = meta(body), self._form.key_of(body)
            if key is None:
                continue
            try:
                value = self._form.read(body)
            except ValueError as error:
                problem = f"ConfigMap {self._namespace}/{about.get('name')} can't be read: {error}"
                if self._form.anew is None:
                    self._report(f"{problem}; delete or repair it")
                    return
                value = self._form.anew()
            kept[key] = MapEntry(value, str(about.get("resourceVersion")), now)
        self.kept = kept
        self._report(problem and f"{problem}; it begins anew")

    def waiting(self) -> dict[K, MapEntry[V]]:
        """Those with something to store that are not being written."""
        return {key: one for key, one in (self.kept or {}).items() if one.dirty and key not in self._writing}

    def save(self, keys: Iterable[K], now: float) -> None:
        """Write these, as many as may be written at once; the others wait."""
        for key in list(dict.fromkeys(keys))[: max(0, self._most - len(self._writing))]:
            assert self.kept is not None
            self.kept[key].saved_at = now
            self._submit(key, self.kept[key])

    def end(self, key: K, gone: Callable[[], bool]) -> None:
        """Forget it, and delete its object if that is of what is gone. gone: asks the API server."""
        one = (self.kept or {}).pop(key, None)
        if one is not None and one.version is not None:
            body = self._form.write(self._namespace, key, one.value, one.version)
            self._client.submit(self._delete, body["metadata"], gone)

    def collect(self, timeout: float = 0.0) -> None:
        """Take what writes have brought."""
        for key, future in list(self._writing.items()):
            if timeout == 0.0 and not future.done():
                continue
            del self._writing[key]
            try:
                version = future.result(timeout)
            except (Conflict, AlreadyExists, NotFound, TimeoutError):
                self.kept = None
                return
            except ClusterError as error:
                self._report(f"{self._form.what} of {key} can't be stored: {error.message}")
                version = None
            one = (self.kept or {}).get(key)
            if one is not None and version is None:
                one.dirty = one.urgent = True
            elif one is not None:
                one.version = version

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self.collect(FLUSH_SECONDS)
        for key, one in self.waiting().items():
            self._submit(key, one)
        self.collect(FLUSH_SECONDS)

    def _submit(self, key: K, one: MapEntry[V]) -> None:
        one.dirty = one.urgent = False
        body = self._form.write(self._namespace, key, one.value, one.version)
        self._writing[key] = self._client.submit(self._write, body)

    def _write(self, body: dict[str, Any]) -> str | None:
        """The object's new version; None where it was not written."""
        try:
            self._fence.leader()
            new = body["metadata"].get("resourceVersion") is None
            answer = self._client.create(CONFIG_MAPS, body) if new else self._client.replace(CONFIG_MAPS, body)
        except Fenced:
            return None
        return str(meta(answer).get("resourceVersion"))

    def _delete(self, about: Mapping[str, Any], gone: Callable[[], bool]) -> None:
        """What is not deleted now is deleted by who leads next."""
        try:
            if gone():
                self._fence.leader()
                version = str(about["resourceVersion"])
                self._client.delete(CONFIG_MAPS, about["name"], self._namespace, resource_version=version)
        except (Fenced, ClusterError) as error:
            logger.info("ConfigMap %s/%s is not deleted: %s", self._namespace, about["name"], error)

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem
