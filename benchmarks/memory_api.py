"""An API server's part in the benchmark of the process: the crowd's lists and watches, and writes, from memory.

No Kubernetes: nothing is validated, admitted or kept. It spares two cores the work of etcd and a real API server, so
that what the operator itself takes can be seen; `scale` is the benchmark with a real one.

    python -m benchmarks.memory_api PORT JOBS
"""

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from aiohttp import web

from benchmarks.crowd import Body, Member, members, nodes, pools
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    EVENTS,
    JOBS,
    LEASES,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
    Resource,
)
from rightpool.hardware.pool import Pool
from rightpool.runtime.children import Children

KEY: Final = b"0123456789abcdef0123456789abcdef"
_CRDS: Final = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_SERVED: Final = (
    *(PROFILED_JOBS, ACCELERATOR_POOLS, PLACEMENT_POLICIES, NODES, JOBS, PODS, EVENTS, LEASES, _CRDS),
    Resource("", "v1", "Namespace", "namespaces", False),
)
_BY_NAME: Final = {resource.plural: resource for resource in _SERVED}
_VERBS: Final = ["create", "delete", "get", "list", "patch", "update", "watch"]
# Who owns which field, as a real server would tell with every object.
_MANAGED: Final[list[Body]] = [
    {
        "manager": manager,
        "operation": "Update",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {f"f:field{number}": {".": {}, "f:part": {}} for number in range(20)}},
    }
    for manager in ("kubectl", "kube-controller-manager")
]
_STARTED: Final = "2026-11-21T10:00:00Z"
_POD_CONDITIONS: Final = ("PodScheduled", "Initialized", "ContainersReady", "Ready")


class Shelf:
    """All objects as text, by kind, namespace and name; whoever watches is told."""

    def __init__(self, count: int) -> None:
        self.objects: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
        self.watchers: dict[str, list[asyncio.Queue[str]]] = defaultdict(list)
        self.version = 1000
        self.writes = 0
        now, machines, children = time.time(), pools(), Children("rightpool-profiler:dev", KEY)
        for node in nodes():
            self.put(NODES, node)
        for member in members(count):
            self._settle(member, now, machines, children)

    def _settle(self, member: Member, now: float, machines: Mapping[str, Pool], children: Children) -> None:
        job = member.profiled_job()
        ref = member.placed(ProfiledJobSpec.model_validate(job["spec"]), machines, now)
        stored = json.loads(self.put(PROFILED_JOBS, {**job, "status": member.status(ref)}))
        pool = machines[ref.placement.pool]
        child = json.loads(self.put(JOBS, member.child(stored, ref, pool, children)))
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": _STARTED} for kind in _POD_CONDITIONS]
        self.put(
            PODS,
            {
                **member.pod(child),
                "status": {"phase": "Running", "podIP": "10.0.0.1", "startTime": _STARTED, "conditions": conditions},
            },
        )

    def put(self, resource: Resource, body: Body) -> str:
        """Store it over what is there."""
        self.version += 1
        about = body["metadata"]
        key = (about.get("namespace") or "", about["name"])
        stored = self.objects[resource.plural]
        old: Body = json.loads(stored.get(key, "{}"))
        first = {
            "uid": f"{resource.plural}/{key[0]}/{key[1]}",
            "generation": 1,
            "creationTimestamp": _STARTED,
            "managedFields": _MANAGED,
        }
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **old, **body}
        whole["metadata"] = {**first, **old.get("metadata", {}), **about, "resourceVersion": str(self.version)}
        text = stored[key] = json.dumps(whole)
        for queue in self.watchers[resource.plural]:
            queue.put_nowait(f'{{"type":"{"MODIFIED" if old else "ADDED"}","object":{text}}}\n')
        return text


class Server:
    """As much of the API as the operator asks for."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Every request."""
        path = request.path.strip("/").split("/")
        if path == ["writes"]:
            return web.json_response(self._shelf.writes)
        if (
            path in (["api"], ["apis"])
            or (path[0] == "api" and len(path) == 2)
            or (path[0] == "apis" and len(path) < 4)
        ):
            return web.json_response(_discovery("/".join(path)))
        rest = path[2:] if path[0] == "api" else path[3:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource, name = _BY_NAME[rest[0]], rest[1] if len(rest) > 1 else None
        if request.method != "GET":
            return await self._write(request, resource, namespace, name)
        if name is not None:
            found = self._shelf.objects[resource.plural].get((namespace, name))
            if found is None:
                return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
            return web.Response(text=found, content_type="application/json")
        return await self._watch(request, resource) if "watch" in request.query else self._list(request, resource)

    def _list(self, request: web.Request, resource: Resource) -> web.Response:
        # The one list with a negated label is of pods that are nobody's Revision: there are none.
        foreign = "!" in request.query.get("labelSelector", "")
        items = [] if foreign else list(self._shelf.objects[resource.plural].values())
        begin = int(request.query.get("continue") or 0)
        end = begin + int(request.query.get("limit") or len(items) + 1)
        about = {"resourceVersion": str(self._shelf.version), "continue": str(end) if end < len(items) else ""}
        head = f'"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":{json.dumps(about)}'
        return web.Response(text=f'{{{head},"items":[{",".join(items[begin:end])}]}}', content_type="application/json")

    async def _watch(self, request: web.Request, resource: Resource) -> web.StreamResponse:
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._shelf.watchers[resource.plural].append(queue)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while True:
                await response.write((await queue.get()).encode())
        finally:
            self._shelf.watchers[resource.plural].remove(queue)

    async def _write(self, request: web.Request, resource: Resource, namespace: str, name: str | None) -> web.Response:
        body = json.loads(await request.read())
        self._shelf.writes += resource is not LEASES
        if resource is EVENTS:
            return web.json_response(body, status=201)
        about = body["metadata"]
        about.pop("resourceVersion", None)
        body["metadata"] = {**about, "name": name or about["name"], **({"namespace": namespace} if namespace else {})}
        text = self._shelf.put(resource, body)
        return web.Response(text=text, status=201 if name is None else 200, content_type="application/json")


def _discovery(path: str) -> Body:
    if path == "api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "apis":
        return {"kind": "APIGroupList", "groups": list(_groups())}
    version = path.partition("/")[2]
    served = [resource for resource in _SERVED if resource.api_version == version]
    resources = [
        {
            "name": resource.plural,
            "singularName": resource.kind.lower(),
            "kind": resource.kind,
            "namespaced": resource.namespaced,
            "verbs": _VERBS,
        }
        for resource in served
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}


def _groups() -> Iterator[Body]:
    for api_version in sorted({resource.api_version for resource in _SERVED if resource.group}):
        group, _, version = api_version.partition("/")
        served = {"groupVersion": api_version, "version": version}
        yield {"name": group, "versions": [served], "preferredVersion": served}


def main(port: int, jobs: int) -> None:
    """Until a signal comes."""
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", Server(Shelf(jobs)).answer)
    web.run_app(application, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
