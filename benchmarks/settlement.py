"""Settling a crowd: its machines, jobs and pods are written to an API server, many at a time."""

import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Final

import yaml

from benchmarks.crowd import NAMESPACES, Body, Member, members, nodes, pools
from devcluster.api import Api, ApiError
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import JOBS, NODES, PODS, PROFILED_JOBS, Resource
from rightpool.runtime.children import Children

_CRDS: Final = Path(__file__).parent.parent / "crds"
_CRD: Final = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", False)
_THREADS: Final = 16
_TOLD_EVERY: Final = 250
_STUCK_SECONDS: Final = 600.0
_ATTEMPTS: Final = 6
_TOO_MUCH: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)})


class Settlement:
    """One cluster's crowd, which only grows. key: that the sidecars' tokens are derived from."""

    def __init__(self, kubeconfig: Path, key: bytes) -> None:
        self._api = Api(kubeconfig)
        self._client = ClusterClient.connect(kubeconfig, qps=5000, burst=5000)
        self._children = Children("rightpool-profiler:dev", key)
        self._pools = pools()
        self._size = 0

    def found(self) -> None:
        """The CRDs, the namespaces and the machines."""
        for path in sorted(_CRDS.glob("*.yaml")):
            definition = yaml.safe_load(path.read_text())
            self._client.apply(_CRD, {part: definition[part] for part in ("metadata", "spec")})
        namespaces = [{"metadata": {"name": f"team-{number}"}} for number in range(NAMESPACES)]
        Api.in_parallel(lambda namespace: self._made(_NAMESPACE, None, namespace), namespaces)
        Api.in_parallel(lambda node: self._made(NODES, None, node), nodes())
        self._until_served()

    def grow(self, size: int) -> None:
        """Until it has so many jobs, all of whose pods run."""
        began, made = time.time(), 0
        with ThreadPoolExecutor(_THREADS) as threads:
            waiting = [threads.submit(self._settle, member, began) for member in members(size, self._size)]
            for done in as_completed(waiting):
                done.result()
                made += 1
                if made % _TOLD_EVERY == 0:
                    print(f"    {made} jobs made, {made / (time.time() - began):.0f} a second", flush=True)
        self._size = size
        told, since = -1, time.time()
        while left := self._waiting():
            if left != told:
                told, since = left, time.time()
                print(f"    {left} pods do not run yet", flush=True)
            if time.time() - since > _STUCK_SECONDS:
                raise RuntimeError(f"{left} pods do not run, and none began to for {_STUCK_SECONDS:.0f} s")
            time.sleep(3.0)

    def _settle(self, member: Member, now: float) -> None:
        namespace = member.key.namespace
        stored = self._made(PROFILED_JOBS, namespace, member.profiled_job())
        ref = member.placed(ProfiledJobSpec.model_validate(stored["spec"]), self._pools, now)
        path = PROFILED_JOBS.path(namespace, member.key.name, "status")
        try:
            self._asked("PUT", path, {**stored, "status": member.status(ref)})
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:  # with ourselves: nobody else writes it
                raise
        child = member.child(stored, ref, self._pools[ref.placement.pool], self._children)
        job = self._made(JOBS, namespace, child)
        self._made(PODS, namespace, member.pod(job))

    def _made(self, resource: Resource, namespace: str | None, body: Body) -> Body:
        """Created; what is there already is the outcome of a request whose answer did not come."""
        try:
            return self._asked("POST", resource.path(namespace), body)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        return self._asked("GET", resource.path(namespace, body["metadata"]["name"]))

    def _asked(self, method: str, path: str, body: Body | None = None) -> Body:
        """Again where the API server has too much to do: it is only slow, and ten thousand jobs are many."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._api.request(method, path, body)
            except ApiError as error:
                if error.status not in _TOO_MUCH or attempt + 1 == _ATTEMPTS:
                    raise
            except (OSError, HTTPException):
                if attempt + 1 == _ATTEMPTS:
                    raise
            time.sleep(2.0**attempt)
        raise AssertionError("unreachable")

    def _until_served(self) -> None:
        deadline = time.time() + _STUCK_SECONDS
        while True:
            try:
                self._api.request("GET", PROFILED_JOBS.path())
                return
            except ApiError:
                if time.time() > deadline:
                    raise
                time.sleep(0.5)

    def _waiting(self) -> int:
        """Pods that do not run, a page of them at most: all ten thousand would keep the API server busy."""
        return len(self._client.page(PODS, fields="status.phase!=Running").items)
