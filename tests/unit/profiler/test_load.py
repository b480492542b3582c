"""Load on a real HTTP server that answers in batches: they become as full as the ladder says."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rightpool_profiler.load import Load, LoadSettings, rungs_of
from rightpool_profiler.warm_up import WarmUpSettings
from tests.patience import PATIENCE

FIXED, EACH = 0.004, 0.001


class Batching:
    """All requests that wait are one batch, which takes FIXED seconds and EACH for each of them."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.failing = False
        self._waiting: list[threading.Event] = []
        self._lock = threading.Condition()
        batching = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                done = threading.Event()
                with batching._lock:
                    batching._waiting.append(done)
                    batching._lock.notify()
                done.wait()
                self.send_response(500 if batching.failing else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        for work in (lambda: self._server.serve_forever(0.01), self._answer):
            threading.Thread(target=work, daemon=True).start()

    def _answer(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting)
                batch, self._waiting = self._waiting, []
            time.sleep(FIXED + EACH * len(batch))
            self.batches.append(len(batch))
            for done in batch:
                done.set()

    def load(self, folder: Path, at_once: int, seconds: float, **times: float) -> Load:
        (folder / "body").write_bytes(b"body")
        request = WarmUpSettings(self.port, "POST", "/", "text/plain", 1, str(folder / "body"))
        return Load(LoadSettings(at_once, seconds), request, folder / "warm", **times)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Batching]:
    made = Batching()
    yield made
    made.stop()


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not so():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("at_once", "rungs"), [(1, (1,)), (2, (1, 2)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12))])
def test_each_number_is_twice_the_one_before(at_once: int, rungs: tuple[int, ...]) -> None:
    assert rungs_of(at_once) == rungs


async def test_batches_become_fuller_round_after_round(server: Batching, tmp_path: Path) -> None:
    task = asyncio.create_task(server.load(tmp_path, 8, 0.8, first=0.05, pause=0.01).run())
    await asyncio.sleep(0.1)
    assert not server.batches, "it is not warm"
    (tmp_path / "warm").touch()
    await until(lambda: bool(server.batches) and max(server.batches) >= 5)
    assert server.batches[:3] == [1, 1, 1], "one at a time comes first"
    assert max(server.batches) <= 8
    seen = len(server.batches)
    await until(lambda: [1, 1, 1] in [server.batches[n : n + 3] for n in range(seen, len(server.batches))])
    task.cancel()


async def test_what_fails_is_sent_again_and_not_at_once(server: Batching, tmp_path: Path) -> None:
    server.failing = True
    (tmp_path / "warm").touch()
    task = asyncio.create_task(server.load(tmp_path, 1, 60.0, first=0.0, pause=0.2).run())
    await until(lambda: len(server.batches) >= 2)
    server.failing = False
    await until(lambda: len(server.batches) >= 10)
    task.cancel()
