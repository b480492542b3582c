"""Requests for checkpoints: their content, and how responses are reported."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rightpool.cluster.sidecars import MAX_RESPONSE_BYTES, Sidecars
from rightpool.contract import PATH_CHECKPOINT, PATH_TRACE
from tests.unit.telemetry.pages import free_port

Heard = list[tuple[str, str, Any]]  # path, authorization, body


@contextmanager
def sidecar(address: str, port: int, status: int, answer: bytes = b"{}", location: str = "") -> Iterator[Heard]:
    """A sidecar that gives every request this answer."""
    heard: Heard = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((self.path, self.headers["Authorization"], json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((address, port), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()


def test_every_pod_is_asked_under_one_id() -> None:
    port = free_port()
    sidecars = Sidecars(port=port, timeout=60.0)
    with sidecar("127.0.0.2", port, 200) as one, sidecar("127.0.0.3", port, 202) as other:
        assert sidecars.request_checkpoint([("a", "127.0.0.2"), ("b", "127.0.0.3")], "secret", "m-1") == {}
    sidecars.close()
    assert one == other == [(PATH_CHECKPOINT, "Bearer secret", {"id": "m-1"})]


def test_errors_and_missing_responses_are_reported_by_pod() -> None:
    port = free_port()
    sidecars = Sidecars(port=port, timeout=60.0)
    with sidecar("127.0.0.2", port, 503, b"no program"), sidecar("127.0.0.4", port, 200):
        addresses = [("a", "127.0.0.2"), ("b", "127.0.0.3"), ("c", "127.0.0.4")]
        problems = sidecars.request_checkpoint(addresses, "secret", "m-1")
    sidecars.close()
    assert problems.keys() == {"a", "b"}
    assert problems["a"].startswith("HTTP 503") and "no program" in problems["a"]
    assert "refused" in problems["b"]


def test_the_token_does_not_follow_a_redirect() -> None:
    port = free_port()
    sidecars = Sidecars(port=port, timeout=60.0)
    location = f"http://127.0.0.3:{port}{PATH_CHECKPOINT}"
    with sidecar("127.0.0.2", port, 307, location=location), sidecar("127.0.0.3", port, 200) as elsewhere:
        assert sidecars.request_checkpoint([("a", "127.0.0.2")], "secret", "m-1").keys() == {"a"}
    sidecars.close()
    assert elsewhere == []


def test_an_oversized_response_is_not_read() -> None:
    port = free_port()
    sidecars = Sidecars(port=port, timeout=60.0)
    with sidecar("127.0.0.2", port, 200, b"x" * (MAX_RESPONSE_BYTES + 1)):
        [problem] = sidecars.request_checkpoint([("a", "127.0.0.2")], "secret", "m-1").values()
    sidecars.close()
    assert "larger than" in problem


@pytest.mark.parametrize(("rank", "word"), [(3, 3), (0, 0), (None, "all")])
def test_a_trace_is_asked_for_of_one_rank_or_all(rank: int | None, word: int | str) -> None:
    port = free_port()
    sidecars = Sidecars(port=port, timeout=60.0)
    with sidecar("127.0.0.2", port, 202, b'{"state": "waiting"}') as heard:
        addresses = [("a", "127.0.0.2"), ("b", "127.0.0.3")]
        outcomes = sidecars.request_trace(addresses, "secret", "now", rank, lambda text: json.loads(text)["state"])
    sidecars.close()
    assert heard == [(PATH_TRACE, "Bearer secret", {"id": "now", "rank": word})]
    assert outcomes.answers == {"a": "waiting"} and outcomes.failures.keys() == {"b"}
