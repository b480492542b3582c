"""Loads the synthetic fleet into an API server: its nodes, jobs and pods are created in parallel."""

import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Final

import yaml

from benchmarks.synthetic_fleet import NAMESPACES, Body, SyntheticJob, nodes, pools, synthetic_jobs
from devcluster.api import Api, ApiError
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import NODES, PODS, PROFILED_JOBS
from rightpool.runtime.act.children import Children

_CRDS: Final = Path(__file__).parent.parent / "crds"
_CRD: Final = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
_NAMESPACE: Final = Resource("", "v1", "Namespace", "namespaces", False)
_THREADS: Final = 16
_PROGRESS_EVERY: Final = 250  # jobs
_TIMEOUT: Final = 600.0
_ATTEMPTS: Final = 6
_RETRIED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)})


class FleetLoader:
    """Creates the synthetic fleet in one cluster. The fleet only grows."""

    def __init__(self, kubeconfig: Path, key: bytes) -> None:
        """`key` is the one from which the sidecars' tokens are derived."""
        self._api = Api(kubeconfig)
        self._client = ClusterClient.connect(kubeconfig, qps=5000, burst=5000)
        self._children = Children("rightpool-profiler:dev", key)
        self._pools = pools()
        self._size = 0

    def prepare(self) -> None:
        """Create the CRDs, the namespaces and the nodes."""
        for path in sorted(_CRDS.glob("*.yaml")):
            definition = yaml.safe_load(path.read_text())
            self._client.apply(_CRD, {part: definition[part] for part in ("metadata", "spec")})
        namespaces = [{"metadata": {"name": f"team-{number}"}} for number in range(NAMESPACES)]
        Api.in_parallel(lambda namespace: self._create(_NAMESPACE, None, namespace), namespaces)
        Api.in_parallel(lambda node: self._create(NODES, None, node), nodes())
        self._wait_until_served()

    def grow(self, size: int) -> None:
        """Create jobs until there are `size`, and wait until every pod runs."""
        began, created = time.time(), 0
        with ThreadPoolExecutor(_THREADS) as threads:
            futures = [threads.submit(self._create_job, job, began) for job in synthetic_jobs(size, self._size)]
            for done in as_completed(futures):
                done.result()
                created += 1
                if created % _PROGRESS_EVERY == 0:
                    print(f"    {created} jobs created, {created / (time.time() - began):.0f} a second", flush=True)
        self._size = size
        previous, since = -1, time.time()
        while left := self._pending_pods():
            if left != previous:
                previous, since = left, time.time()
                print(f"    {left} pods do not run yet", flush=True)
            if time.time() - since > _TIMEOUT:
                raise RuntimeError(f"{left} pods do not run, and none started within {_TIMEOUT:.0f} s")
            time.sleep(3.0)

    def _create_job(self, job: SyntheticJob, now: float) -> None:
        namespace = job.key.namespace
        stored = self._create(PROFILED_JOBS, namespace, job.profiled_job())
        ref = job.first_revision(ProfiledJobSpec.model_validate(stored["spec"]), self._pools, now)
        path = PROFILED_JOBS.path(namespace, job.key.name, "status")
        try:
            self._request("PUT", path, {**stored, "status": job.status(ref)})
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:  # a conflict is with an earlier attempt: there is no other writer
                raise
        child = job.child(stored, ref, self._pools[ref.placement.pool], self._children)
        stored_child = self._create(JOBS, namespace, child)
        self._create(PODS, namespace, job.pod(stored_child))

    def _create(self, resource: Resource, namespace: str | None, body: Body) -> Body:
        """Create the object, or get it where an earlier attempt created it but its response was lost."""
        try:
            return self._request("POST", resource.path(namespace), body)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
        return self._request("GET", resource.path(namespace, body["metadata"]["name"]))

    def _request(self, method: str, path: str, body: Body | None = None) -> Body:
        """A request, repeated with backoff while the API server is overloaded."""
        for attempt in range(_ATTEMPTS):
            try:
                return self._api.request(method, path, body)
            except ApiError as error:
                if error.status not in _RETRIED or attempt + 1 == _ATTEMPTS:
                    raise
            except (OSError, HTTPException):
                if attempt + 1 == _ATTEMPTS:
                    raise
            time.sleep(2.0**attempt)
        raise AssertionError("unreachable")

    def _wait_until_served(self) -> None:
        deadline = time.time() + _TIMEOUT
        while True:
            try:
                self._api.request("GET", PROFILED_JOBS.path())
                return
            except ApiError:
                if time.time() > deadline:
                    raise
                time.sleep(0.5)

    def _pending_pods(self) -> int:
        """How many pods do not run, one page at most: a list of all ten thousand would load the API server."""
        return len(self._client.page(PODS, fields="status.phase!=Running").items)
