"""HTTP servers with behaviour set by tests, each on its own loopback address and all on one port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes] | str


@dataclass
class Page:
    """The behaviour of a server. `answer` gets the path with its query, and may be replaced while the server runs."""

    answer: Callable[[str], Answer]
    asked: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> bool:
        """Sleeps, but not beyond the end of the test."""
        return self.closing.wait(seconds)


def free_port() -> int:
    """A port that nothing listens on, at any loopback address."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port


class _Handler(BaseHTTPRequestHandler):
    page: Page

    def do_GET(self) -> None:
        self.page.asked.append(self.path)
        answer = self.page.answer(self.path)
        status, body = (200, answer.encode()) if isinstance(answer, str) else answer
        with suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


@contextmanager
def serving(page: Page, address: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serves a page while the block runs; gives its URL."""
    handler = type("Handler", (_Handler,), {"page": page})
    server = _Server((address, port), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{address}:{server.server_address[1]}"
    finally:
        page.closing.set()
        server.shutdown()
        server.server_close()


@contextmanager
def raw_server(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """A server below HTTP: `talk` writes what it likes. Gives its port on 127.0.0.1."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    talk(connection, over)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        over.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
