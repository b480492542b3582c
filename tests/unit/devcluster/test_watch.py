"""A list and its watches, against a server that goes away and forgets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from devcluster.api import Api, ApiError
from devcluster.watch import Watch
from tests.patience import PATIENCE

Body = dict[str, Any]


def pod(name: str, version: int) -> Body:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def event(kind: str, name: str, version: int) -> Body:
    return {"type": kind, "object": pod(name, version)}


class Server:
    """Answers lists with `pages`, and each watch with the next of `streams`; after the last one it stops the watch."""

    def __init__(self, pages: list[list[Body]], *streams: Callable[[], Iterator[Body]]) -> None:
        self.pages = pages
        self.streams = list(streams)
        self.lists = 0
        self.versions: list[str] = []
        self.over = threading.Event()
        self.replaced: list[list[str]] = []
        self.changed: list[tuple[str, bool]] = []

    def request(self, method: str, path: str) -> Body:
        query = parse_qs(urlsplit(path).query)
        number = int(query.get("continue", ["0"])[0])
        self.lists += number == 0
        following = str(number + 1) if number + 1 < len(self.pages) else ""
        return {"items": self.pages[number], "metadata": {"resourceVersion": "10", "continue": following}}

    def lines(self, path: str, *, seconds: float) -> Iterator[Body]:
        query = parse_qs(urlsplit(path).query)
        assert query["labelSelector"] == ["app=x"] and query["watch"] == ["true"]
        self.versions.append(query["resourceVersion"][0])
        if not self.streams:
            self.watch.stop()
            self.over.set()
            return iter(())
        return self.streams.pop(0)()

    def run(self) -> Server:
        self.watch: Watch[str] = Watch(
            cast(Api, self),
            "/api/v1/pods",
            reduce=lambda body: None if body["metadata"]["name"] == "other" else body["metadata"]["name"],
            replaced=self.replaced.append,
            changed=lambda name, exists: self.changed.append((name, exists)),
            backoff=(0.0,),
            labelSelector="app=x",
        )
        self.watch.start()
        assert self.over.wait(PATIENCE)
        return self


def test_pages_of_a_list_are_one_and_changes_follow() -> None:
    def changes() -> Iterator[Body]:
        yield event("ADDED", "c", 11)
        yield event("MODIFIED", "other", 12)
        yield event("BOOKMARK", "", 13)
        yield event("DELETED", "a", 14)

    server = Server([[pod("a", 1), pod("other", 2)], [pod("b", 3)]], changes).run()
    assert server.replaced == [["a", "b"]]
    assert server.changed == [("c", True), ("a", False)]
    assert server.versions == ["10", "14"]


def test_a_server_that_was_away_is_followed_from_where_it_was() -> None:
    def broken() -> Iterator[Body]:
        yield event("ADDED", "b", 11)
        raise ConnectionResetError

    def refused() -> Iterator[Body]:
        raise ApiError(503, "starting")

    server = Server([[pod("a", 1)]], broken, refused).run()
    assert server.lists == 1
    assert server.versions == ["10", "11", "11"]


def test_a_version_that_the_server_has_forgotten_needs_a_new_list() -> None:
    def gone() -> Iterator[Body]:
        yield {"type": "ERROR", "object": {"code": 410, "message": "too old"}}

    def refused() -> Iterator[Body]:
        raise ApiError(410, "too old")

    server = Server([[pod("a", 1)]], gone, refused).run()
    assert server.lists == 3
    assert server.replaced == [["a"], ["a"], ["a"]]
