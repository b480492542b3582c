"""A program for pods: it answers requests, and counts them as BentoML does. The base image's Python alone runs it.

A request says how long it takes and what comes of it, so that what is counted does not depend on the machine. An image
may be slower by a factor, and fail each so many requests. Probes are counted as BentoML counts them: as requests to
another endpoint.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

REQUESTS, METRICS = 8000, 8002
EDGES: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TIMES: Final = float(os.environ.get("TIMES", "1"))
FAILS_EACH: Final = int(os.environ.get("FAILS_EACH", "0"))

Series = tuple[str, int]  # endpoint, code

counted: Counter[Series] = Counter()
seconds_of: Counter[Series] = Counter()
buckets: Counter[tuple[Series, float]] = Counter()
lock = threading.Lock()
numbers = itertools.count(1)


def count(endpoint: str, code: int, seconds: float) -> None:
    series = (endpoint, code)
    with lock:
        counted[series] += 1
        seconds_of[series] += seconds  # type: ignore[assignment]
        for edge in EDGES:
            buckets[series, edge] += seconds <= edge


def page() -> str:
    name, lines = "bentoml_service_request_duration_seconds", []
    with lock:
        for (endpoint, code), number in counted.items():
            of = f'endpoint="{endpoint}",http_response_code="{code}",service_name="Ranker"'
            lines.append(f"bentoml_service_request_total{{{of}}} {number}")
            for edge in EDGES:
                lines.append(f'{name}_bucket{{{of},le="{edge}"}} {buckets[(endpoint, code), edge]}')
            lines.append(f'{name}_bucket{{{of},le="+Inf"}} {number}')
            lines.append(f"{name}_sum{{{of}}} {seconds_of[endpoint, code]}")
            lines.append(f"{name}_count{{{of}}} {number}")
    return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    """Of both ports."""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/metrics":
            self._answer(200, page())
            return
        asked_for = parse_qs(asked.query)
        code = int(asked_for.get("code", ["200"])[0])
        if FAILS_EACH and asked.path == "/predict" and next(numbers) % FAILS_EACH == 0:
            code = 500
        count(asked.path, code, TIMES * float(asked_for.get("seconds", ["0.001"])[0]))
        self._answer(code, "")

    def _answer(self, code: int, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: of each request a line would be the largest part of the work."""


def main() -> None:
    metrics = ThreadingHTTPServer(("", METRICS), Handler)
    threading.Thread(target=metrics.serve_forever, daemon=True).start()
    ThreadingHTTPServer(("", REQUESTS), Handler).serve_forever()


if __name__ == "__main__":
    main()
