"""A proxy in front of the real Prometheus that can be unavailable, slow or give wrong answers."""

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


class ProxyMode(StrEnum):
    """How the proxy answers."""

    NORMAL = "normal"
    GONE = "gone"  # connections are closed without an answer
    SLOW = "slow"  # the real answer, after ten seconds
    GARBAGE = "garbage"  # malformed answers
    NOT_FINITE = "not-finite"  # real series with values that are NaN, infinite or negative


class PrometheusProxy:
    """Listens on a free port. `mode` may be set at any time."""

    def __init__(self, upstream: str, seed: int = 0, slow_seconds: float = SLOW_SECONDS) -> None:
        self.upstream = upstream
        self.mode = ProxyMode.NORMAL
        self._slow_seconds = slow_seconds
        self.random = random.Random(seed)
        self.requests = 0
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, name="telemetry", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: bytes | None, kind: str) -> tuple[int, bytes] | None:
        """Status and body; None: close the connection without an answer."""
        self.requests += 1
        mode = self.mode
        if mode is ProxyMode.GONE:
            return None
        if mode is ProxyMode.GARBAGE:
            return 200, self.random.choice(_GARBAGE)
        if mode is ProxyMode.SLOW:
            time.sleep(self._slow_seconds)
        request = urllib.request.Request(self.upstream + path, data=body, headers={"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=5) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return None
        if mode is ProxyMode.NOT_FINITE:
            text = _not_finite(text, self.random)
        return status, text


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Operators are killed during requests: nothing to report."""


def _not_finite(text: bytes, rng: random.Random) -> bytes:
    """The same answer with every value replaced."""
    pieces = text.split(b'"value":[')
    for number, piece in enumerate(pieces[1:], 1):
        moment, _, rest = piece.partition(b",")
        bad = rng.choice([b'"NaN"', b'"+Inf"', b'"-Inf"', b'"-1e308"', b'"1e309"', b'"0"'])
        pieces[number] = moment + b"," + bad + b"]" + rest.partition(b"]")[2]
    return b'"value":['.join(pieces)


def _handler(telemetry: PrometheusProxy) -> type[http.server.BaseHTTPRequestHandler]:
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
            """Requests are not logged."""

    return Handler
