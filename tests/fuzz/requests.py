"""Requests as any client on the pod network can send them to the sidecar, and its answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import tempfile
from pathlib import Path
from random import Random
from typing import Any, Final

from rightpool_profiler.checkpoint import Checkpoints, Mode
from rightpool_profiler.report import parse
from rightpool_profiler.server import Server
from rightpool_profiler.state import State
from rightpool_profiler.traces.requested import Requested
from tests.fuzz.datagrams import report
from tests.fuzz.mutation import ODD, broken, damaged, encoded
from tests.fuzz.target import Finding

TOKEN: Final = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
MAX_ANSWER: Final = 512 * 1024
_STATUS: Final = re.compile(rb"HTTP/1\.1 (200|202|400|401|404|405|409|413|431) [A-Z][A-Za-z -]+\r\n")
_METHODS: Final = ("GET", "POST", "GET", "POST", "PUT", "HEAD", "get", "", "OPTIONS", "\x00")
_PATHS: Final = (
    "/metrics",
    "/profile",
    "/healthz",
    "/checkpoint",
    "/checkpoint",
    "/trace",
    "/trace",
    "/checkpoint",
    "/",
    "*",
    "/..",
    "/metrics?x=1",
)
_VERSIONS: Final = ("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2", "")
_SCHEMES: Final = ("Bearer", "bearer", "Bearer", "Basic", "", "Bearer Bearer")


class _Transport:
    def abort(self) -> None:
        """Nothing to close."""


class _Writer:
    """Receives an answer in place of a socket."""

    def __init__(self) -> None:
        self.answer = b""
        self.transport = _Transport()

    def write(self, data: bytes) -> None:
        self.answer += data

    async def drain(self) -> None:
        """Sent at once."""

    def close(self) -> None:
        """Nothing to close."""

    async def wait_closed(self) -> None:
        """Nothing to wait for."""


class Requests:
    """One sidecar whose program makes steps, so that checkpoints can be requested."""

    name = "requests"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rightpool-fuzz-")
        self._loop = asyncio.new_event_loop()
        state = State(10.0, 4)
        document = report(Random(1), 1000.0)
        state.apply(parse(json.dumps(document).encode()), 10.0**9, 1.9e9)  # last report in the far future: never stale
        checkpoints = Checkpoints(Mode.SIGNAL, "SIGUSR1", Path(self._folder.name))
        (Path(self._folder.name) / "commands").mkdir()
        requested = Requested(Path(self._folder.name), Path(self._folder.name), 0.0)
        self._server = Server(state, checkpoints, requested, hashlib.sha256(TOKEN.encode()).hexdigest())

    def close(self) -> None:
        self._loop.close()
        self._folder.cleanup()

    def feed(self, random: Random) -> bool:
        head, body = self._request(random)
        data = head + body
        damage = random.random() < 0.3
        if damage:
            data = damaged(data, random, random.randrange(1, 4))
        answer = self._loop.run_until_complete(self._ask(data))
        status = self._well_formed(answer) if answer else 0
        if status == 202:
            _entitled(data)
        return status in (200, 202)

    def check(self) -> None:
        if self._server._open:
            raise Finding(f"{self._server._open} connections are open, and none is there")
        left = sorted(path.name for path in Path(self._folder.name).iterdir())
        if not {"checkpoint.json", "commands", "trace.json"}.issuperset(left):
            raise Finding(f"files {left}")

    async def _ask(self, data: bytes) -> bytes:
        reader = asyncio.StreamReader(limit=8 * 1024, loop=self._loop)
        reader.feed_data(data)
        reader.feed_eof()
        writer: Any = _Writer()
        await self._server._serve(reader, writer)
        return bytes(writer.answer)

    def _well_formed(self, answer: bytes) -> int:
        match = _STATUS.match(answer)
        head, separator, body = answer.partition(b"\r\n\r\n")
        if match is None or not separator or len(answer) > MAX_ANSWER:
            raise Finding(f"the answer is {answer[:200]!r}")
        if f"Content-Length: {len(body)}".encode() not in head.split(b"\r\n") or TOKEN.encode() in answer:
            raise Finding(f"the answer is {answer[:200]!r}")
        return int(match[1])

    def _request(self, random: Random) -> tuple[bytes, bytes]:
        message: dict[str, Any] = {"id": f"d-{random.randrange(50)}"}
        if random.random() < 0.3:
            message["rank"] = random.choice((0, 1, 7, "all", "one", -1, True, 1e9))
        body = encoded(broken(message, random, random.choice((0, 0, 1))))
        token = random.choice((TOKEN, TOKEN, TOKEN[:-1], TOKEN.upper(), "", TOKEN + " x", "é"))
        length: Any = random.choice((len(body),) * 6 + (0, len(body) + 1, -1, "x", "9" * 40, "١", random.choice(ODD)))
        headers = [
            ("Host", "10.0.0.7:9464"),
            ("Authorization", f"{random.choice(_SCHEMES)} {token}"),
            ("Content-Length", str(length)),
        ]
        if random.random() < 0.05:
            headers.append(random.choice((("Transfer-Encoding", "chunked"), ("X", "y" * 9000), ("\x00", "\x00"))))
        random.shuffle(headers)
        path = random.choice(_PATHS)
        lines = [f"{random.choice(_METHODS)} {path} {random.choice(_VERSIONS)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogatepass"), body


def _entitled(data: bytes) -> None:
    """Whether the request had the token and a valid id."""
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    if not lines[0].startswith((b"POST /checkpoint", b"POST /trace")):
        raise Finding(f"something is done for {lines[0]!r}")
    authorizations = [line for line in lines if line.strip().lower().startswith(b"authorization")]
    if not any(line.split()[-1:] == [TOKEN.encode()] for line in authorizations):
        raise Finding(f"a checkpoint for {authorizations!r}")
    sizes = [line.partition(b":")[2] for line in lines if line.strip().lower().startswith(b"content-length")]
    identities = [json.loads(body[: int(size)]).get("id") for size in sizes if size.strip().isdigit()]
    if not any(isinstance(one, str) and 0 < len(one) <= 64 and one.isprintable() for one in identities):
        raise Finding(f"a checkpoint for {body!r}")
