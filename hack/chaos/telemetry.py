"""A Prometheus that can be gone, slow or mad: what the operators read, with the real one behind it."""

from __future__ import annotations

import http.server
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from enum import StrEnum
from typing import Any, Final

SLOW_SECONDS: Final = 10.0
_GARBAGE: Final = (
    b"",
    b"\x00\xff\xfe" * 1000,
    b"<html>502 Bad Gateway</html>",
    b'{"status":"success"',
    b'{"status":"success","data":{"resultType":"vector","result":null}}',
    b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1e999,"NaN"]}]}}',
    b'{"status":"success","data":{"resultType":"matrix","result":[[[[]]]]}}',
    b'{"status":"success","data":{"resultType":"vector","result":[{"metric":"x","value":"y"}]}}',
    b"[" * 100_000,
)


class Mood(StrEnum):
    """What it answers."""

    WELL = "well"
    GONE = "gone"  # connections are closed without an answer
    SLOW = "slow"  # the true answer, after ten seconds
    GARBAGE = "garbage"  # anything but an answer
    NOT_FINITE = "not-finite"  # true series whose values are NaN, infinite or negative


class Telemetry:
    """Listens on a port of its own. mood may be set at any time."""

    def __init__(self, upstream: str, seed: int = 0, slow_seconds: float = SLOW_SECONDS) -> None:
        self.upstream = upstream
        self.mood = Mood.WELL
        self._slow_seconds = slow_seconds
        self.random = random.Random(seed)
        self.asked = 0
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, name="telemetry", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: bytes | None, kind: str) -> tuple[int, bytes] | None:
        """Status and body; None: none at all."""
        self.asked += 1
        mood = self.mood
        if mood is Mood.GONE:
            return None
        if mood is Mood.GARBAGE:
            return 200, self.random.choice(_GARBAGE)
        if mood is Mood.SLOW:
            time.sleep(self._slow_seconds)
        request = urllib.request.Request(self.upstream + path, data=body, headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return None
        if mood is Mood.NOT_FINITE:
            text = _not_finite(text, self.random)
        return status, text


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Operators are killed while they ask: nothing to tell."""


def _not_finite(text: bytes, chance: random.Random) -> bytes:
    """The same answer with every value replaced."""
    pieces = text.split(b'"value":[')
    for number, piece in enumerate(pieces[1:], 1):
        moment, _, rest = piece.partition(b",")
        bad = chance.choice([b'"NaN"', b'"+Inf"', b'"-Inf"', b'"-1e308"', b'"1e309"', b'"0"'])
        pieces[number] = moment + b"," + bad + b"]" + rest.partition(b"]")[2]
    return b'"value":['.join(pieces)


def _handler(telemetry: Telemetry) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(None)

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        def _serve(self, body: bytes | None) -> None:
            answer = telemetry.answer(self.path, body, self.headers.get("Content-Type") or "text/plain")
            if answer is None:
                self.close_connection = True
                return
            try:
                self.send_response(answer[0])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Silent: who asks what is not of interest."""

    return Handler
