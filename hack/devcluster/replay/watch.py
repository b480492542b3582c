"""Keeps up with one kind of object: a list, then a watch, and both again whenever connection or server fail."""

import http.client
import logging
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from devcluster.replay.api import Api, ApiError

_log = logging.getLogger(__name__)
_PAGE: Final = 500
_BACKOFF_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)

T = TypeVar("T")


class Watch(Generic[T]):
    """Runs on a thread of its own.

    replaced: takes all there are. changed: takes one, and whether it still exists. reduce: the object cut down to what
    is kept, None to leave it out.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        reduce: Callable[[dict[str, Any]], T | None],
        replaced: Callable[[list[T]], None],
        changed: Callable[[T, bool], None],
        **query: str,
    ) -> None:
        self._api = api
        self._path = path
        self._query = query
        self._reduce = reduce
        self._replaced = replaced
        self._changed = changed
        self._failures = 0

    def start(self) -> None:
        """Never joined: it blocks in a read, and ends with the process."""
        threading.Thread(target=self._run, name=f"watch {self._path}", daemon=True).start()

    def _run(self) -> None:
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = self._list()
                version = self._follow(version)
                self._failures = 0
            except (OSError, http.client.HTTPException, ValueError, ApiError) as error:
                if isinstance(error, ApiError):
                    version = None  # too old, or refused: only a new list says what is true
                pause = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS) - 1)]
                self._failures += 1
                _log.warning("watching %s: %s; again in %g s", self._path, error or type(error).__name__, pause)
                threading.Event().wait(pause)

    def _list(self) -> str:
        found: list[T] = []
        query = self._query | {"limit": str(_PAGE)}
        while True:
            page = self._api.get(self._path, **query)
            found += [kept for item in page["items"] if (kept := self._reduce(item)) is not None]
            following = page["metadata"].get("continue")
            if not following:
                break
            query["continue"] = following
        self._replaced(found)
        self._failures = 0
        return str(page["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> str:
        for event in self._api.watch(self._path, resourceVersion=version, **self._query):
            item = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(int(item.get("code", 500)), str(item.get("message", "")))
            version = str(item["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK" and (kept := self._reduce(item)) is not None:
                self._changed(kept, event["type"] != "DELETED")
        return version
