"""The client's requests, seen and changed through its hook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from rightpool.cluster.client import ClusterClient, Request, Send
from rightpool.cluster.discovery import unserved
from rightpool.cluster.errors import NotFound, Unavailable, error_from
from rightpool.cluster.resources import NODES, PODS, PROFILED_JOBS
from tests.unit.handlers.api_server import ApiServer, Refusal


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.close()


def connect(server: ApiServer, folder: Path, hook: Any = None) -> ClusterClient:
    return ClusterClient.connect(server.kubeconfig(folder), hook=hook)


def test_a_hook_gets_every_request_and_its_response(server: ApiServer, tmp_path: Path) -> None:
    seen: list[tuple[str, str, int]] = []

    def count(request: Request, send: Send) -> dict[str, Any]:
        answer = send(request)
        seen.append((request.method, request.path, len(answer["items"])))
        return answer

    client = connect(server, tmp_path, count)
    assert client.list_all(NODES) == []
    client.page(PODS, "team", labels="app")
    client.close()
    assert seen == [("GET", "/api/v1/nodes", 0), ("GET", "/api/v1/namespaces/team/pods", 0)]


def test_a_hook_may_raise_instead_of_the_server(server: ApiServer, tmp_path: Path) -> None:
    def refuse(request: Request, send: Send) -> dict[str, Any]:
        raise Unavailable(f"no {request.method} of {request.path}")

    client = connect(server, tmp_path, refuse)
    with pytest.raises(Unavailable, match="no GET of /api/v1/nodes"):
        client.list_all(NODES)
    client.close()
    assert server.requests == []


def test_discovery_names_unserved_resources(server: ApiServer, tmp_path: Path) -> None:
    client = connect(server, tmp_path)
    assert unserved(client, (PROFILED_JOBS, PODS)) == []
    server.refuse = lambda request: Refusal(404) if request.path == "/apis/rightpool.dev/v1alpha1" else None
    assert unserved(client, (PROFILED_JOBS, PODS)) == ["profiledjobs.rightpool.dev"]
    server.refuse = lambda request: Refusal(200, body={"groups": None}) if request.path == "/apis" else None
    assert unserved(client, (PROFILED_JOBS, PODS)) == ["profiledjobs.rightpool.dev"]
    read_only = {"resources": [{"name": "pods", "verbs": ["get", "list"]}]}
    server.refuse = lambda request: Refusal(200, body=read_only) if request.path == "/api/v1" else None
    assert unserved(client, (PROFILED_JOBS, PODS)) == ["pods"]
    server.refuse = lambda request: Refusal(503)
    with pytest.raises(Unavailable):
        unserved(client, (PODS,))
    client.close()


def test_a_refusal_is_an_error_of_its_kind(server: ApiServer, tmp_path: Path) -> None:
    client = connect(server, tmp_path)
    server.refuse = lambda request: Refusal(404, body={"message": "there is none"})
    with pytest.raises(NotFound, match="there is none"):
        client.get(NODES, "absent")
    server.refuse = lambda request: Refusal(429, headers={"Retry-After": "1"})
    with pytest.raises(Unavailable) as refused:
        client.get(NODES, "absent")
    assert refused.value.retry_after == 1.0
    client.close()


def test_who_asks_and_what_for_is_in_the_request(server: ApiServer, tmp_path: Path) -> None:
    seen: list[tuple[str | None, ...]] = []

    def note(request: web.Request) -> Refusal:
        headers = (request.headers.get(name) for name in ("Authorization", "Content-Type", "User-Agent"))
        seen.append((request.method, request.path_qs, *headers))
        return Refusal(200, body={"kind": "Node"})

    server.refuse = note
    client = connect(server, tmp_path)
    client.apply(NODES, {"metadata": {"name": "n"}})
    client.close()
    query = "fieldManager=rightpool&force=true"
    content = "application/apply-patch+yaml"
    assert seen == [("PATCH", f"/api/v1/nodes/n?{query}", "Bearer t", content, "rightpool")]


def test_a_server_that_is_gone_is_unavailable(server: ApiServer, tmp_path: Path) -> None:
    client = connect(server, tmp_path)
    server.close()
    with pytest.raises(Unavailable):
        client.get(NODES, "n")
    client.close()


def test_a_web_page_is_no_message() -> None:
    page = b"\n<!DOCTYPE html>\n<html><body>" + b"not here " * 100
    error = error_from(404, page)
    assert isinstance(error, NotFound)
    assert error.message == "HTTP 404 with a web page: no Kubernetes API server is at this address, or a proxy answers"
    assert error_from(404, b"404 page not found\n").message == "404 page not found"


def test_a_kubeconfig_that_says_nothing_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    with pytest.raises(ValueError, match="--kubeconfig"):
        ClusterClient.connect(tmp_path / "config")
