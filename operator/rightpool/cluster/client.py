"""The one connection to the API server: plain dicts in and out, typed errors, a rate limit, a timeout on every call.

Built on the official client for what it is good at (credentials, token refresh, TLS, connection pool). Its typed models
are not used: they cost more than the request, and know neither our resources nor fields newer than themselves.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlencode

import urllib3
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from kubernetes.client.exceptions import ApiException

from rightpool.cluster.errors import ClusterError, Expired, Unavailable, error_from
from rightpool.cluster.limiter import RateLimiter
from rightpool.cluster.resources import Resource
from rightpool.contract import FIELD_MANAGER

THREADS: Final = 8  # more do not make the client faster (measured), and the connection pool is as large
PAGE: Final = 500
CONNECT_TIMEOUT: Final = 5.0
JSON_CONTENT: Final = "application/json"
APPLY_CONTENT: Final = "application/apply-patch+yaml"

Body = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list. resource_version: of the whole list; follow: token of the next page, empty at the end."""

    items: list[Body]
    resource_version: str
    follow: str


class ClusterClient:
    """Thread-safe. Calls block; `submit` runs one on the client's own threads."""

    def __init__(self, api: Any, *, limiter: RateLimiter, timeout: float = 15.0) -> None:
        self._api = api
        self._limiter = limiter
        self._timeout = (min(CONNECT_TIMEOUT, timeout), timeout)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="cluster")

    @classmethod
    def connect(
        cls, kubeconfig: Path | None = None, *, qps: float = 50.0, burst: int = 100, timeout: float = 15.0
    ) -> ClusterClient:
        """With the pod's service account where there is one, else with a kubeconfig."""
        configuration = kubernetes_client.Configuration()
        if kubeconfig is not None:
            kubernetes_config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
        else:
            try:
                kubernetes_config.load_incluster_config(client_configuration=configuration)
            except kubernetes_config.ConfigException:
                kubernetes_config.load_kube_config(client_configuration=configuration)
        configuration.connection_pool_maxsize = THREADS + 4  # the planner's, the Lease's and the relist's own threads
        configuration.retries = urllib3.Retry(total=1, connect=1, read=0, status=0, redirect=0, other=0)
        api = kubernetes_client.ApiClient(configuration)
        return cls(api, limiter=RateLimiter(qps, burst), timeout=timeout)

    def close(self) -> None:
        """No new calls; those under way end by themselves or at their timeout."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._api.close()

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run something that calls this client on its threads."""
        return self._threads.submit(function, *args, **kwargs)

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        """One object, from etcd and not from a cache."""
        return self._call("GET", resource.path(namespace, name))

    def page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        follow: str = "",
        limit: int = PAGE,
    ) -> Listing:
        """One page of a list."""
        query = {"limit": str(limit)}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        if follow:
            query["continue"] = follow
        answer = self._call("GET", resource.path(namespace), query=query)
        meta = answer.get("metadata") or {}
        return Listing(
            answer.get("items") or [], str(meta.get("resourceVersion") or ""), str(meta.get("continue") or "")
        )

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        """All pages of a list. Raises Expired when the server has forgotten where we were; the caller starts again."""
        follow = ""
        while True:
            listing = self.page(resource, namespace, labels=labels, fields=fields, follow=follow)
            yield listing
            follow = listing.follow
            if not follow:
                return

    def list_all(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Body]:
        """Every object of a list, for short ones."""
        for attempt in (1, 2):
            try:
                return [
                    item
                    for page in self.pages(resource, namespace, labels=labels, fields=fields)
                    for item in page.items
                ]
            except Expired:
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    # --- writing -----------------------------------------------------------------------------------------------------

    def apply(
        self, resource: Resource, body: Mapping[str, Any], *, subresource: str | None = None, dry_run: bool = False
    ) -> Body:
        """Server-side apply. With resourceVersion or uid in the body it is a Conflict where they do not match."""
        meta = body["metadata"]
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        return self._call("PATCH", path, query=query, body=full, content=APPLY_CONTENT)

    def create(self, resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False) -> Body:
        """POST: never touches an object that is there (AlreadyExists)."""
        query = {"fieldManager": FIELD_MANAGER}
        if dry_run:
            query["dryRun"] = "All"
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return self._call("POST", resource.path(body["metadata"].get("namespace")), query=query, body=full)

    def replace(self, resource: Resource, body: Mapping[str, Any]) -> Body:
        """PUT: fails with Conflict unless metadata.resourceVersion is the newest."""
        meta = body["metadata"]
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return self._call("PUT", resource.path(meta.get("namespace"), meta["name"]), body=full)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "Foreground",
    ) -> None:
        """Delete exactly the object that was looked at: Conflict where it is another one by now, or has changed."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {key: value for key, value in preconditions.items() if value},
        }
        self._call("DELETE", resource.path(namespace, name), body=options)

    # --- transport ---------------------------------------------------------------------------------------------------

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        content: str = JSON_CONTENT,
    ) -> Body:
        self._limiter.acquire()
        headers: dict[str, str] = {"Accept": JSON_CONTENT, "User-Agent": "rightpool"}
        if body is not None:
            headers["Content-Type"] = content
        url = self._api.configuration.host + path + (f"?{urlencode(query)}" if query else "")
        try:
            self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            response = self._api.call_api(method, url, headers, body, _request_timeout=self._timeout)
            data: bytes = response.read()
        except ApiException as error:
            raise Unavailable(str(error.reason)) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unavailable(_connection_problem(error)) from error
        if response.status >= 400:
            problem = error_from(response.status, data, response.getheader("Retry-After"))
            if isinstance(problem, Unavailable) and problem.retry_after:
                self._limiter.block(min(problem.retry_after, 30.0))
            raise problem
        try:
            answer = json.loads(data)
        except ValueError as error:
            raise Unavailable(f"{method} {path}: the answer is not JSON") from error
        if not isinstance(answer, dict):
            raise ClusterError(f"{method} {path}: the answer is not an object")
        return answer


def _connection_problem(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return f"{type(error).__name__}: {reason if reason is not None else error}"[:500]
