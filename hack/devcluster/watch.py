"""Keeps up with one kind of object: a list, then watches, and a list again where the server has forgotten the version.

A watch goes on from the last resource version that was seen, so that nothing is missed while the server is away.
"""

import http.client
import logging
import threading
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from devcluster.api import Api, ApiError

_log = logging.getLogger(__name__)
_PAGE: Final = 500
_BACKOFF_SECONDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
_MARGIN_SECONDS: Final = 30.0  # a watch that has not ended this long after its time is dead

T = TypeVar("T")


class Watch(Generic[T]):
    """Runs on a thread of its own.

    replaced: takes all there are. changed: takes one, and whether it still exists. reduce: the object cut down to what
    is kept, None to leave it out; a first list of ten thousand whole pods would take a gigabyte. seconds: that the
    server keeps one connection open.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        reduce: Callable[[dict[str, Any]], T | None],
        replaced: Callable[[list[T]], None],
        changed: Callable[[T, bool], None],
        seconds: int = 300,
        backoff: Sequence[float] = _BACKOFF_SECONDS,
        **query: str,
    ) -> None:
        self._api = api
        self._path = path
        self._query = query
        self._reduce = reduce
        self._replaced = replaced
        self._changed = changed
        self._seconds = seconds
        self._backoff = backoff
        self._version: str | None = None
        self._failures = 0
        self._stop = threading.Event()

    def start(self) -> None:
        """Never joined: it blocks in a read, and ends with the process."""
        threading.Thread(target=self._run, name=f"watch {self._path}", daemon=True).start()

    def stop(self) -> None:
        """The thread ends with its present connection."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._version = self._version or self._list()
                self._follow()
            except (OSError, http.client.HTTPException, ValueError, ApiError) as error:
                if isinstance(error, ApiError) and error.status == http.client.GONE:
                    self._version = None
                pause = self._backoff[min(self._failures, len(self._backoff) - 1)]
                level = logging.DEBUG if self._failures else logging.WARNING  # once for each time that it is away
                _log.log(level, "watching %s: %s; again in %g s", self._path, error or type(error).__name__, pause)
                self._failures += 1
                self._stop.wait(pause)

    def _list(self) -> str:
        found: list[T] = []
        query = self._query | {"limit": str(_PAGE)}
        while True:
            page = self._api.request("GET", self._url(query))
            found += [kept for item in page["items"] if (kept := self._reduce(item)) is not None]
            following = page["metadata"].get("continue")
            if not following:
                break
            query["continue"] = following
        self._replaced(found)
        self._failures = 0
        return str(page["metadata"]["resourceVersion"])

    def _follow(self) -> None:
        query = self._query | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self._seconds),
            "resourceVersion": self._version or "",
        }
        for event in self._api.lines(self._url(query), seconds=self._seconds + _MARGIN_SECONDS):
            self._failures = 0
            item = event["object"]
            if event["type"] == "ERROR":
                raise ApiError(int(item.get("code", 500)), str(item.get("message", "")))
            self._version = str(item["metadata"]["resourceVersion"])
            if event["type"] != "BOOKMARK" and (kept := self._reduce(item)) is not None:
                self._changed(kept, event["type"] != "DELETED")

    def _url(self, query: dict[str, str]) -> str:
        return f"{self._path}?{urllib.parse.urlencode(query)}"
