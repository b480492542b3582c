"""The HTTP server for all simulated pods: one listening socket, where `getsockname` gives the pod's address.

It uses asyncio's protocols and no framework: a fleet of ten thousand pods is a thousand requests a second,
most of them the same GET on connections that stay open.
"""

import asyncio
import hashlib
import hmac
import http.client
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TextIO

from devcluster.replay import exposition
from devcluster.replay.fleet import Fleet
from devcluster.replay.gang import Conflict, Gang
from devcluster.replay.pod import SimulatedPod
from rightpool import contract

_log = logging.getLogger(__name__)
_MAX_HEAD: Final = 8 * 1024
_MAX_BODY: Final = 4 * 1024
_MAX_ID: Final = 64
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Request:
    """token: the bearer token; None if absent."""

    method: str
    path: str
    token: str | None = None
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: str
    kind: str = "application/json"


class Sidecars:
    """Answers requests for the addressed pod. requests: log of all but successful GETs."""

    def __init__(self, fleet: Fleet, clock: Callable[[], float] = time.time, requests: TextIO | None = None) -> None:
        self._fleet = fleet
        self._clock = clock
        self._requests = requests

    def answer(self, address: str, request: Request) -> Answer | None:
        """The answer; None: close the connection without one, as a failed sidecar does."""
        found = self._fleet.find(address)
        silent = found is None or found[1].faults[found[0].uid].silent
        answer = None if found is None or silent else self._answer(*found, request)
        if self._requests is not None and (answer is None or answer.status >= 400 or request.method != "GET"):
            status = "-" if answer is None else answer.status
            pod = "-" if found is None else found[0]
            print(f"{self._clock():.3f} {address} {pod} {request.method} {request.path} {status}", file=self._requests)
        return answer

    def _answer(self, pod: SimulatedPod, gang: Gang, request: Request) -> Answer:
        now = self._clock()
        if request.path == contract.PATH_CHECKPOINT:
            if request.method != "POST":
                return _refusal(405, "use POST")
            if not _admits(pod, request.token):
                return _refusal(401, "the token of this Revision is needed")
            return self._checkpoint(pod, gang, request.body, now)
        if request.path not in (contract.PATH_METRICS, contract.PATH_PROFILE, contract.PATH_HEALTH):
            return _refusal(404, "no such page")
        if request.method != "GET":
            return _refusal(405, "use GET")
        if request.path == contract.PATH_METRICS:
            return Answer(200, exposition.metrics(pod, gang, now), _TEXT)
        if request.path == contract.PATH_PROFILE:
            return Answer(200, json.dumps(exposition.profile(pod, gang, now)))
        return Answer(200, "ok\n", "text/plain; charset=utf-8")

    def _checkpoint(self, pod: SimulatedPod, gang: Gang, body: bytes, now: float) -> Answer:
        try:
            identity = json.loads(body)["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return _refusal(400, 'the body must be {"id": "…"}')
        if not isinstance(identity, str) or not 0 < len(identity) <= _MAX_ID or not identity.isprintable():
            return _refusal(400, f"id: a text of 1 to {_MAX_ID} printable characters")
        try:
            state = gang.ask_save(identity, pod.checkpoint_mode, now)
        except Conflict as conflict:
            return _refusal(409, str(conflict))
        _log.info("%s: checkpoint %s: %s", pod, identity, state)
        return Answer(202, json.dumps({"id": identity, "state": state}))


def _refusal(status: int, message: str) -> Answer:
    return Answer(status, json.dumps({"message": message}))


def _admits(pod: SimulatedPod, token: str | None) -> bool:
    if token is None or pod.token_sha256 is None:
        return False
    return hmac.compare_digest(hashlib.sha256(token.encode()).hexdigest(), pod.token_sha256)


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection, requests one after the other."""

    def __init__(self, sidecars: Sidecars) -> None:
        self._sidecars = sidecars
        self._transport: asyncio.Transport | None = None
        self._address = ""
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while self._transport is not None and not self._transport.is_closing() and self._take_request():
            pass

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def _take_request(self) -> bool:
        """Answer the first request in the buffer; False if it is incomplete or was the last."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD:
                self._write(_refusal(431, "the head is too long"), keep=False)
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        words, length = first.split(" "), headers.get("content-length", "0")
        if len(words) != 3 or "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
            self._write(_refusal(400, "not HTTP/1.1 with a Content-Length"), keep=False)
            return False
        if int(length) > _MAX_BODY:
            self._write(_refusal(413, f"at most {_MAX_BODY} bytes"), keep=False)
            return False
        start, end = end + 4, end + 4 + int(length)
        if len(self._buffer) < end:
            return False
        body, self._buffer = self._buffer[start:end], self._buffer[end:]
        scheme, _, token = headers.get("authorization", "").partition(" ")
        bearer = token.strip() if scheme.lower() == "bearer" else None
        answer = self._sidecars.answer(self._address, Request(words[0], words[1].partition("?")[0], bearer, body))
        if answer is None:
            assert self._transport is not None
            self._transport.abort()
            return False
        keep = words[2] == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
        self._write(answer, keep=keep)
        return keep

    def _write(self, answer: Answer, *, keep: bool) -> None:
        body = answer.body.encode()
        head = (
            f"HTTP/1.1 {answer.status} {http.client.responses[answer.status]}\r\nContent-Type: {answer.kind}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: {'keep-alive' if keep else 'close'}\r\n\r\n"
        )
        assert self._transport is not None
        self._transport.write(head.encode("latin-1") + body)
        if not keep:
            self._transport.close()


async def listen(sidecars: Sidecars, host: str, port: int) -> asyncio.Server:
    """Listen, with a backlog for a Prometheus that connects to every pod within a second of its start."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: Connection(sidecars), host, port, backlog=4096)
