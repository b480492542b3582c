"""The client of the API server: plain dicts, typed errors, a rate limit, and a timeout for every request.

It uses the official client for credentials, token refresh, TLS and the connection pool, but not its typed models: these
cost more processor time than the request, and lack our resources and newer fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import urlencode

import urllib3
from pydantic_core import from_json

from rightpool.api.kubernetes import Resource
from rightpool.api.value_object import value_object
from rightpool.cluster.errors import ClusterError, Expired, Unavailable, Unreachable, error_from
from rightpool.cluster.limiter import RateLimiter
from rightpool.cluster.official_client import kubernetes_client, kubernetes_config
from rightpool.contract import FIELD_MANAGER

THREADS: Final = 8  # more do not make the client faster (measured), and the connection pool is as large
PAGE: Final = 200  # objects; whole pages, parsed, are most of the memory of a start
CONNECT_TIMEOUT: Final = 5.0
JSON_CONTENT: Final = "application/json"
TEXT_CONTENT: Final = "text/plain, */*"
APPLY_CONTENT: Final = "application/apply-patch+yaml"
MERGE_CONTENT: Final = "application/merge-patch+json"
PATCH_CONTENT: Final = "application/json-patch+json"

Body = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")


@value_object
class Listing:
    """One page of a list."""

    items: list[Body]
    """As the API server sends them."""
    resource_version: str
    """Of the whole list."""
    follow: str
    """Token of the next page; empty on the last one."""


@value_object
class Request:
    """A request to the API server."""

    method: str
    """Of HTTP, in capitals."""
    path: str
    """From the root of the server, without the query."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Parameters, not encoded yet."""
    body: Body | list[Body] | None = None
    """Sent as JSON; None: no body."""
    content: str = JSON_CONTENT
    """Media type of the body."""


Send = Callable[[Request], Body]
Hook = Callable[[Request, Send], Body]


_CONNECTION: Final = re.compile(r"^HTTPS?Connection(Pool)?\([^)]*\): ")


class ClusterClient:
    """Thread-safe. Calls block; `submit` runs a function on the client's own threads.

    `hook` is called with every request and the function that sends it, so that requests can be counted or made to fail.
    """

    def __init__(self, api: Any, *, limiter: RateLimiter, timeout: float = 15.0, hook: Hook | None = None) -> None:
        self._api = api
        self._limiter = limiter
        self._hook = hook
        self._timeout = (min(CONNECT_TIMEOUT, timeout), timeout)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="cluster")

    @classmethod
    def connect(
        cls,
        kubeconfig: Path | str | None = None,
        *,
        context: str | None = None,
        qps: float = 50.0,
        burst: int = 100,
        timeout: float = 15.0,
        hook: Hook | None = None,
    ) -> ClusterClient:
        """Connect with the given kubeconfig, else with the pod's service account, else with the default kubeconfig.

        `kubeconfig` may be several files in the format of $KUBECONFIG. `context` is the current one if absent. Raises
        ValueError where none of them can be used.
        """
        configuration = kubernetes_client.Configuration()
        try:
            if kubeconfig is not None:
                kubernetes_config.load_kube_config(str(kubeconfig), context, configuration)
            else:
                try:
                    kubernetes_config.load_incluster_config(client_configuration=configuration)
                except kubernetes_config.ConfigException:
                    kubernetes_config.load_kube_config(client_configuration=configuration)
        except kubernetes_config.ConfigException as error:
            raise ValueError(f"{error} (--kubeconfig or $KUBECONFIG names one)") from error
        configuration.connection_pool_maxsize = THREADS + 4  # more for the threads of planner, Lease and relister
        # An answer with Retry-After is for the rate limiter: here it would be tried again at once, without the header.
        configuration.retries = urllib3.Retry(
            total=1, connect=1, read=0, status=0, redirect=0, other=0, respect_retry_after_header=False
        )
        api = kubernetes_client.ApiClient(configuration)
        return cls(api, limiter=RateLimiter(qps, burst), timeout=timeout, hook=hook)

    def close(self) -> None:
        """Accept no new calls. Pending ones end by themselves or by their timeout."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._api.close()

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on the client's threads."""
        return self._threads.submit(function, *args, **kwargs)

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Body:
        """Get one object, not from the API server's cache."""
        return self.request("GET", resource.path(namespace, name))

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
        """Get one page of a list."""
        query = {"limit": str(limit)}
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        if follow:
            query["continue"] = follow
        response = self.request("GET", resource.path(namespace), query=query)
        meta = response.get("metadata") or {}
        return Listing(
            response.get("items") or [], str(meta.get("resourceVersion") or ""), str(meta.get("continue") or "")
        )

    def pages(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> Iterator[Listing]:
        """All pages of a list. Raises Expired if a page token is too old; then the caller starts again."""
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
        """All objects of a short list."""
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
        self,
        resource: Resource,
        body: Mapping[str, Any],
        *,
        subresource: str | None = None,
        manager: str = FIELD_MANAGER,
    ) -> Body:
        """Server-side apply. Raises Conflict if a resourceVersion or uid in the body does not match.

        manager: who owns these fields then. What it owned and leaves out is removed, unless another one owns it.
        """
        meta = body["metadata"]
        query = {"fieldManager": manager, "force": "true"}
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        return self.request("PATCH", path, query=query, body=full, content=APPLY_CONTENT)

    def create(
        self, resource: Resource, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False
    ) -> Body:
        """POST. Raises AlreadyExists if the object exists. strict: an unknown field is Invalid, and not left out."""
        query = {"fieldManager": FIELD_MANAGER}
        if strict:
            query["fieldValidation"] = "Strict"
        if dry_run:
            query["dryRun"] = "All"
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return self.request("POST", resource.path(body["metadata"].get("namespace")), query=query, body=full)

    def patch(
        self, resource: Resource, name: str, namespace: str, operations: list[Body], *, dry_run: bool = False
    ) -> Body:
        """JSON patch. Raises Conflict where it names a uid or resourceVersion that the object does not have."""
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        path = resource.path(namespace, name)
        return self.request("PATCH", path, query=query, body=operations, content=PATCH_CONTENT)

    def replace(self, resource: Resource, body: Mapping[str, Any]) -> Body:
        """PUT. Raises Conflict unless metadata.resourceVersion is the newest."""
        meta = body["metadata"]
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return self.request("PUT", resource.path(meta.get("namespace"), meta["name"]), body=full)

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
        """Delete exactly this object. Raises Conflict if its uid or resource version is another one."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: Body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
            "preconditions": {key: value for key, value in preconditions.items() if value},
        }
        self.request("DELETE", resource.path(namespace, name), body=options)

    def container_output(
        self, namespace: str, pod: str, container: str, command: Sequence[str], *, silence: float
    ) -> Iterator[bytes]:
        """What a command in a container writes to standard output, in pieces; see `cluster.container_output`."""
        from rightpool.cluster.container_output import container_output  # the operator has no right to it

        return container_output(self._api, namespace, pod, container, command, silence=silence)

    # --- transport ---------------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | list[Body] | None = None,
        content: str = JSON_CONTENT,
    ) -> Body:
        """Any other request, such as for a subresource."""
        request = Request(method, path, query or {}, body, content)
        return self._send(request) if self._hook is None else self._hook(request, self._send)

    def text(self, path: str, query: Mapping[str, str]) -> str:
        """What is no object: the log of a container."""
        return self._answer(Request("GET", path, query), TEXT_CONTENT).decode("utf-8", "replace")

    def _send(self, request: Request) -> Body:
        try:
            # The lists of a start are tens of megabytes: this takes two thirds of json's time, and keeps equal strings
            # once.
            parsed = from_json(self._answer(request, JSON_CONTENT), cache_strings="all")
        except ValueError as error:
            raise Unavailable(f"{request.method} {request.path}: the answer is not JSON") from error
        if not isinstance(parsed, dict):
            raise ClusterError(f"{request.method} {request.path}: the answer is not an object")
        return parsed

    def _answer(self, request: Request, accepted: str) -> bytes:
        self._limiter.acquire()
        headers: dict[str, str] = {"Accept": accepted, "User-Agent": "rightpool"}
        if request.body is not None:
            headers["Content-Type"] = request.content
        url = self._api.configuration.host + request.path + (f"?{urlencode(request.query)}" if request.query else "")
        try:
            self._api.update_params_for_auth(headers, [], ["BearerToken"], request.path, request.method, request.body)
            response = self._api.call_api(request.method, url, headers, request.body, _request_timeout=self._timeout)
            data: bytes = response.read()
        except kubernetes_client.ApiException as error:
            raise Unavailable(str(error.reason)) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{self._api.configuration.host}: {_connection_problem(error)}") from error
        if response.status >= 400:
            problem = error_from(response.status, data, response.getheader("Retry-After"))
            if isinstance(problem, Unavailable) and problem.retry_after:
                self._limiter.block(min(problem.retry_after, 30.0))
            raise problem
        return data


def _connection_problem(error: Exception) -> str:
    """The innermost cause, without the name of the library's object that speaks of it."""
    while isinstance(reason := getattr(error, "reason", None), Exception):
        error = reason
    return _CONNECTION.sub("", str(error)).strip()[:500] or type(error).__name__
