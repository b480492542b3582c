"""The API server's own event stream, of the kinds that a campaign looks at: one list, then watches for ever.

A watch goes on from the last resource version it saw, so that nothing is missed while the server is away. Where the
server has forgotten that version, a new list says what is gone.
"""

from __future__ import annotations

import http.client
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from devcluster.api import Api, ApiError
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS, SERVICES, Resource
from rightpool.contract import LABEL_JOB

KINDS: Final = (PROFILED_JOBS, JOBS, PODS, SERVICES)
WATCH_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One event. kind: ADDED, MODIFIED or DELETED. at: monotonic seconds when it came."""

    resource: Resource
    kind: str
    body: Mapping[str, Any]
    at: float


class Stream:
    """A thread for each kind; what they see comes out of `take`."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = Api(kubeconfig)
        self._queue: queue.SimpleQueue[Seen] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._listed = {resource: threading.Event() for resource in KINDS}
        self.relists = 0
        for resource in KINDS:
            threading.Thread(target=self._run, args=(resource,), name=f"see-{resource.plural}", daemon=True).start()
        for listed in self._listed.values():
            listed.wait(120)

    def stop(self) -> None:
        """Threads end with their present watch."""
        self._stop.set()

    def take(self) -> list[Seen]:
        """All that came since the last call."""
        seen = []
        while True:
            try:
                seen.append(self._queue.get_nowait())
            except queue.Empty:
                return seen

    def _run(self, resource: Resource) -> None:
        known: dict[str, Mapping[str, Any]] = {}
        version = ""
        while not self._stop.is_set():
            try:
                version = self._follow(resource, known, version or self._list(resource, known))
            except ApiError as error:
                version = "" if error.status == 410 else version
                time.sleep(0.2)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)

    def _path(self, resource: Resource, **query: str) -> str:
        if resource is not PROFILED_JOBS:
            query["labelSelector"] = LABEL_JOB
        return resource.path() + "?" + "&".join(f"{key}={value}" for key, value in query.items())

    def _list(self, resource: Resource, known: dict[str, Mapping[str, Any]]) -> str:
        answer = self._api.request("GET", self._path(resource))
        listed = {body["metadata"]["uid"]: body for body in answer.get("items") or ()}
        for uid in known.keys() - listed.keys():
            self._tell(resource, "DELETED", known.pop(uid))
        for uid, body in listed.items():
            self._tell(resource, "MODIFIED" if uid in known else "ADDED", body)
            known[uid] = body
        self.relists += self._listed[resource].is_set()
        self._listed[resource].set()
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, resource: Resource, known: dict[str, Mapping[str, Any]], version: str) -> str:
        path = self._path(resource, watch="1", resourceVersion=version, allowWatchBookmarks="true", timeoutSeconds="15")
        try:
            for event in self._api.lines(path, seconds=WATCH_SECONDS):
                body = event["object"]
                if event["type"] == "ERROR":
                    return "" if body.get("code") == 410 else version
                version = str(body["metadata"]["resourceVersion"])
                if event["type"] == "BOOKMARK":
                    continue
                if event["type"] == "DELETED":
                    known.pop(body["metadata"]["uid"], None)
                else:
                    known[body["metadata"]["uid"]] = body
                self._tell(resource, event["type"], body)
        except (OSError, http.client.HTTPException, ValueError):
            time.sleep(0.2)
        return version

    def _tell(self, resource: Resource, kind: str, body: Mapping[str, Any]) -> None:
        self._queue.put(Seen(resource, kind, body, time.monotonic()))
