"""An API server over plain HTTP, as far as an operator's start needs one: discovery, lists, watches and Leases.

`refuse` decides about each request before it is answered, so that a test says what is out of order and for how long.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from rightpool.api.kubernetes import Resource
from rightpool.cluster.resources import LEASES
from rightpool.runtime.observe.watched import watched
from tests.patience import PATIENCE

DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
SERVED = (*watched(), LEASES, DEFINITIONS)
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer in place of the true one."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Body | None = None


Refuse = Callable[[web.Request], Refusal | None]


def answers(request: web.Request) -> Refusal | None:
    """Nothing is out of order."""
    return None


class ApiServer:
    """Runs in a thread with an event loop of its own."""

    def __init__(self) -> None:
        self.refuse: Refuse = answers
        self.served: tuple[Resource, ...] = SERVED
        self.requests: list[str] = []
        self.leases: dict[str, Body] = {}
        self.watching: dict[str, int] = {}  # path → open watches
        self._versions = itertools.count(1)
        self._streams: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._over = asyncio.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        assert self._started.wait(PATIENCE)

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)

    def install(self, resource: Resource) -> None:
        """It is served from now on."""
        self.served = (*self.served, resource)

    def remove(self, resource: Resource) -> None:
        """It is not served any more, and its watches end."""
        self.served = tuple(one for one in self.served if one != resource)
        self.end_watches()

    def end_watches(self) -> None:
        """Every watch is cut off."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._streams])

    @property
    def holder(self) -> str:
        """The holder of the Lease; empty without one."""
        return next((str(lease["spec"].get("holderIdentity") or "") for lease in self.leases.values()), "")

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._over.wait()
        for task in list(self._streams):
            task.cancel()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path_qs}")
        refusal = self.refuse(request)
        if refusal is not None:
            body = {"kind": "Status", "code": refusal.status, "message": "out of order"}
            return web.json_response(refusal.body or body, status=refusal.status, headers=refusal.headers)
        if request.path.endswith(f"/{LEASES.plural}") or f"/{LEASES.plural}/" in request.path:
            return await self._lease(request)
        if request.query.get("watch"):
            return await self._watch(request)
        return self._read(request.path)

    def _read(self, path: str) -> web.Response:
        groups = sorted({r.group for r in self.served if r.group})
        if path == "/api":
            return web.json_response({"versions": ["v1"]})
        if path == "/apis":
            return web.json_response({"groups": [group_entry(name, self.served) for name in groups]})
        members = [r for r in self.served if path == (f"/apis/{r.api_version}" if r.group else f"/api/{r.version}")]
        if members:
            return web.json_response({"resources": [resource_entry(r) for r in members]})
        for resource in self.served:
            if path.endswith(f"/{resource.plural}"):
                meta = {"resourceVersion": str(next(self._versions))}
                listing = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta}
                return web.json_response({**listing, "items": []})
        return web.json_response({"kind": "Status", "code": 404, "message": f"no {path}"}, status=404)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        self.watching[request.path] = self.watching.get(request.path, 0) + 1
        try:
            await asyncio.Event().wait()
        finally:
            self.watching[request.path] -= 1
            self._streams.discard(task)
        return stream

    async def _lease(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            lease = self.leases.get(request.path)
            return web.json_response(lease or {"code": 404, "message": "none"}, status=200 if lease else 404)
        body = json.loads(await request.text())
        path = request.path if request.method == "PUT" else f"{request.path}/{body['metadata']['name']}"
        body["metadata"]["resourceVersion"] = str(next(self._versions))
        self.leases[path] = body
        return web.json_response(body)


def group_entry(name: str, served: tuple[Resource, ...] = SERVED) -> Body:
    version = next(r.version for r in served if r.group == name)
    return {
        "name": name,
        "versions": [{"version": version, "groupVersion": f"{name}/{version}"}],
        "preferredVersion": {"version": version, "groupVersion": f"{name}/{version}"},
    }


def resource_entry(resource: Resource) -> Body:
    return {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "kind": resource.kind,
        "namespaced": resource.namespaced,
        "verbs": VERBS,
    }
