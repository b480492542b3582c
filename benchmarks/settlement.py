"""Settling a crowd: its machines, jobs and pods are written to an API server, many at a time."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import yaml

from benchmarks.crowd import NAMESPACES, Member, members, nodes, pools
from devcluster.api import Api
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import JOBS, NODES, PODS, PROFILED_JOBS, Resource
from rightpool.runtime.children import Children

_CRDS: Final = Path(__file__).parent.parent / "crds"
_CRD: Final = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", False)
_THREADS: Final = 16


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
        for number in range(NAMESPACES):
            self._client.create(_NAMESPACE, {"metadata": {"name": f"team-{number}"}})
        Api.in_parallel(lambda node: self._api.request("POST", NODES.path(), node), nodes())
        time.sleep(2.0)  # until the CRDs are served

    def grow(self, size: int) -> None:
        """Until it has so many jobs, all of whose pods run."""
        now = time.time()
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(lambda member: self._settle(member, now), members(size, self._size)))
        self._size = size
        while (running := self._running()) < size:
            print(f"    {running} of {size} pods run", flush=True)
            time.sleep(3.0)

    def _settle(self, member: Member, now: float) -> None:
        namespace = member.key.namespace
        stored = self._api.request("POST", PROFILED_JOBS.path(namespace), member.profiled_job())
        ref = member.placed(ProfiledJobSpec.model_validate(stored["spec"]), self._pools, now)
        path = PROFILED_JOBS.path(namespace, member.key.name, "status")
        self._api.request("PUT", path, {**stored, "status": member.status(ref)})
        child = member.child(stored, ref, self._pools[ref.placement.pool], self._children)
        job = self._api.request("POST", JOBS.path(namespace), child)
        self._api.request("POST", PODS.path(namespace), member.pod(job))

    def _running(self) -> int:
        count = 0
        follow = ""
        while True:
            page = self._client.page(PODS, fields="status.phase=Running", follow=follow)
            count += len(page.items)
            follow = page.follow
            if not follow:
                return count
