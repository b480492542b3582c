"""A program for pods: a server whose first inferences are slow. Others are answered by 500 until these are over, so
that one that reached a cold replica shows. It ignores SIGTERM."""

from __future__ import annotations

import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

PORT: Final = 8000
COLD: Final = 5
"""So many inferences are slow, one after the other."""
SLOW_SECONDS: Final = 0.3
BODY: Final = b'{"inputs": [1, 2, 3]}'

inferred = 0
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """Of inferences, of probes, and of users' requests."""

    def do_POST(self) -> None:
        global inferred
        if self.rfile.read(int(self.headers.get("Content-Length") or 0)) != BODY:
            self._answer(400)
            return
        with lock:
            if inferred < COLD:
                time.sleep(SLOW_SECONDS)
            inferred += 1
        self._answer(200)

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/ready" or inferred >= COLD else 500)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ThreadingHTTPServer(("", PORT), Handler).serve_forever()
