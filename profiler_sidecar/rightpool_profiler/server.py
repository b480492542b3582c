"""The HTTP side: small, bounded, one request per connection.

It is meant for the operator and Prometheus, but any pod of the network can connect. So every size and every wait has a
limit, and only requests with the Revision's token may ask for a checkpoint or a trace.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from rightpool import contract
from rightpool_profiler import exposition
from rightpool_profiler.checkpoint import MAX_ID, Checkpoints, Conflict, clocks
from rightpool_profiler.state import State
from rightpool_profiler.traces.requested import MAX_RANK, Requested

MAX_HEAD: Final = 8 * 1024
MAX_BODY: Final = 4 * 1024
MAX_CONNECTIONS: Final = 32
CLIENT_SECONDS: Final = 5.0  # for a client to send its request, and to receive the response


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    body: str
    kind: str = "application/json"


class _Refused(Exception):
    """Ends the request with this response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.answer = _Answer(status, json.dumps({"message": message}))


class Server:
    """Serves the state of this pod."""

    def __init__(self, state: State, checkpoints: Checkpoints, requested: Requested, token_sha256: str) -> None:
        self._state = state
        self._checkpoints = checkpoints
        self._requested = requested
        self._token_sha256 = token_sha256.strip().lower()
        self._open = 0

    async def start(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._serve, None, port, limit=MAX_HEAD, backlog=MAX_CONNECTIONS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._open += 1
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                try:
                    answer = await self._answer(reader)
                except _Refused as refused:
                    answer = refused.answer
                writer.write(_encode(answer))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open -= 1
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader) -> _Answer:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head is too long") from error
        method, path, headers = _parse(head)
        if path in (contract.PATH_CHECKPOINT, contract.PATH_TRACE):
            if method != "POST":
                raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use POST")
            self._authorize(headers)
            body = await _body(reader, headers)
            return self._checkpoint(body) if path == contract.PATH_CHECKPOINT else self._trace(body)
        if path not in (contract.PATH_METRICS, contract.PATH_PROFILE, contract.PATH_HEALTH):
            raise _Refused(HTTPStatus.NOT_FOUND, "no such page")
        if method != "GET":
            raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use GET")
        now, _ = clocks()
        if path == contract.PATH_METRICS:
            return _Answer(HTTPStatus.OK, exposition.render(*self._state.exposition(now)), exposition.CONTENT_TYPE)
        if path == contract.PATH_PROFILE:
            return _Answer(HTTPStatus.OK, json.dumps(self._profile(now)))
        return _Answer(HTTPStatus.OK, "ok\n", "text/plain; charset=utf-8")

    def _authorize(self, headers: Mapping[str, str]) -> None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = hashlib.sha256(token.strip().encode()).hexdigest()
        if not (scheme.lower() == "bearer" and self._token_sha256 and hmac.compare_digest(given, self._token_sha256)):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "the token of this Revision is needed")

    def _checkpoint(self, body: bytes) -> _Answer:
        identity = _identity(_object(body))
        try:
            state = self._checkpoints.ask(identity, self._state, *clocks())
        except Conflict as conflict:
            raise _Refused(HTTPStatus.CONFLICT, str(conflict)) from conflict
        return _Answer(HTTPStatus.ACCEPTED, json.dumps({"id": identity, "state": state}))

    def _trace(self, body: bytes) -> _Answer:
        request = _object(body)
        identity, rank = _identity(request), request.get("rank", 0)
        if rank == contract.TRACE_ALL:
            rank = None
        elif isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank <= MAX_RANK:
            message = f'rank: a whole number from 0 to {MAX_RANK}, or "{contract.TRACE_ALL}"'
            raise _Refused(HTTPStatus.BAD_REQUEST, message)
        answer = self._requested.ask(identity, rank, self._state, *clocks())
        return _Answer(HTTPStatus.ACCEPTED, json.dumps(answer.to_wire()))

    def _profile(self, now: float) -> dict[str, Any]:
        samples, histograms = self._state.exposition(now)
        quality = {s.labels["field"]: s.labels["quality"] for s in samples if s.metric == contract.FIELD_QUALITY}
        fields: dict[str, Any] = {}
        for sample in samples:
            if sample.metric in quality:
                field = fields.setdefault(sample.metric, {"quality": quality[sample.metric], "values": []})
                field["values"].append({"labels": dict(sample.labels), "value": sample.value})
        for histogram in histograms:
            fields[histogram.metric] = {
                "quality": quality[histogram.metric],
                "bounds": list(histogram.bounds),
                "counts": list(histogram.counts),
                "sum": histogram.total,
            }
        return {
            "fields": fields,
            "sources": self._state.sources(now),
            "processes": self._state.processes(now),
            "checkpoint": self._checkpoints.describe(self._state, now),
            "datagrams": {"taken": self._state.taken, "refused": self._state.refused},
        }


def _object(body: bytes) -> dict[str, Any]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict) or "id" not in request:
        raise _Refused(HTTPStatus.BAD_REQUEST, 'the body must be {"id": "…"}')
    return request


def _identity(request: Mapping[str, Any]) -> str:
    identity = request["id"]
    if not isinstance(identity, str) or not 0 < len(identity) <= MAX_ID or not identity.isprintable():
        raise _Refused(HTTPStatus.BAD_REQUEST, f"id: a text of 1 to {MAX_ID} printable characters")
    return identity


def _parse(head: bytes) -> tuple[str, str, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    request = lines[0].split(" ")
    if len(request) != 3 or not request[2].startswith("HTTP/1."):
        raise _Refused(HTTPStatus.BAD_REQUEST, "not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return request[0], request[1].partition("?")[0], headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        raise _Refused(HTTPStatus.BAD_REQUEST, "a Content-Length is needed")
    if len(length) > 9 or int(length) > MAX_BODY:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MAX_BODY} bytes")
    return await reader.readexactly(int(length))


def _encode(answer: _Answer) -> bytes:
    body = answer.body.encode()
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Content-Type: {answer.kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    )
    if answer.status is HTTPStatus.UNAUTHORIZED:
        head += "WWW-Authenticate: Bearer\r\n"
    return head.encode() + b"\r\n" + body
