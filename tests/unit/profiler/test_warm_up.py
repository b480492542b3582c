"""Warm-up of a real HTTP server: when it is warm, what is sent to it, and how it fails."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rightpool_profiler.warm_up import STEADY, WarmUp, WarmUpFailed, WarmUpSettings, is_steady
from tests.patience import PATIENCE

BODY = bytes(range(256))


class Model:
    """A server that answers its first requests late, or not well."""

    def __init__(self) -> None:
        self.answer: Callable[[int], int] = lambda number: 200
        self.seconds: Callable[[int], float] = lambda number: 0.0
        self.seen: list[tuple[str, str, str | None, bytes]] = []
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                number = len(model.seen)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                model.seen.append((self.command, self.path, self.headers.get("Content-Type"), body))
                time.sleep(model.seconds(number))
                self.send_response(model.answer(number))
                self.send_header("Content-Length", "7")
                self.end_headers()
                self.wfile.write(b"no such")

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@pytest.fixture
def model() -> Iterator[Model]:
    made = Model()
    made.start()
    yield made
    made.stop()


class Warming:
    """The task, as the sidecar runs it."""

    def __init__(self, model: Model, folder: Path, **settings: object) -> None:
        wanted = {"port": model.port, "method": "POST", "path": "/infer?x=1", "content_type": "application/json"}
        wanted |= {"requests": 30, "body": str(folder / "body"), **settings}
        (folder / "body").write_bytes(BODY)
        self.mark = folder / "warm"
        warm_up = WarmUp(WarmUpSettings.read(json.dumps(wanted)), self.mark, pause=0.02, patience=0.2)
        self.task = asyncio.create_task(warm_up.run())

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not so():
                if self.task.done():
                    self.task.result()
                await asyncio.sleep(0.01)


async def test_it_is_warm_once_its_answers_take_as_long_as_those_before(model: Model, tmp_path: Path) -> None:
    """Requests that are slow at first are sent until none is."""
    model.seconds = lambda number: 0.2 if number < 3 else 0.02
    warming = Warming(model, tmp_path, requests=1000)
    await warming.until(warming.mark.exists)
    assert 3 + STEADY // 2 < len(model.seen) < 1000
    assert set(model.seen) == {("POST", "/infer?x=1", "application/json", BODY)}
    sent = len(model.seen)
    await asyncio.sleep(0.1)
    assert len(model.seen) == sent, "what is warm gets no more"
    warming.task.cancel()


async def test_so_many_are_enough_however_long_they_take(model: Model, tmp_path: Path) -> None:
    model.seconds = lambda number: 0.002 * number
    warming = Warming(model, tmp_path, requests=7, method="GET", body=None)
    await warming.until(warming.mark.exists)
    assert model.seen == [("GET", "/infer?x=1", None, b"")] * 7
    warming.task.cancel()


async def test_a_server_that_is_not_up_or_says_that_it_is_not_ready_is_waited_for(model: Model, tmp_path: Path) -> None:
    model.stop()
    warming = Warming(model, tmp_path)
    await asyncio.sleep(0.4)  # twice as long as requests may fail
    assert not warming.task.done()
    began = time.monotonic()
    model.answer = lambda number: 503 if time.monotonic() < began + 0.5 else 200
    model.start()
    await warming.until(warming.mark.exists)
    warming.task.cancel()


@pytest.mark.parametrize("status", [400, 500, 307])
async def test_requests_that_fail_say_how(model: Model, tmp_path: Path, status: int) -> None:
    model.answer = lambda number: status
    warming = Warming(model, tmp_path)
    with pytest.raises(WarmUpFailed, match=f"^POST /infer\\?x=1: HTTP {status}: no such$"):
        await warming.task
    assert len(model.seen) > 1 and not warming.mark.exists()


async def test_one_that_fails_is_sent_again(model: Model, tmp_path: Path) -> None:
    model.answer = lambda number: 500 if number % 3 == 1 else 200
    warming = Warming(model, tmp_path, requests=9)
    await warming.until(warming.mark.exists)
    assert sum(number % 3 != 1 for number in range(len(model.seen))) == 9
    warming.task.cancel()


async def test_a_body_that_is_not_there_is_named(model: Model, tmp_path: Path) -> None:
    warming = Warming(model, tmp_path, body=str(tmp_path / "none"))
    with pytest.raises(WarmUpFailed, match="the ConfigMap of its body, or its key, is not there"):
        await warming.task
    assert not model.seen


async def test_a_server_that_was_started_anew_is_warmed_up_again(model: Model, tmp_path: Path) -> None:
    first = Warming(model, tmp_path, requests=3)
    await first.until(first.mark.exists)
    first.task.cancel()
    again = Warming(model, tmp_path, requests=3)  # the sidecar alone
    await asyncio.sleep(0.1)
    assert len(model.seen) == 3
    model.stop()
    await again.until(lambda: not again.mark.exists())
    model.start()
    await again.until(again.mark.exists)
    assert len(model.seen) == 6
    again.task.cancel()


def test_times_are_steady_where_both_halves_of_the_last_are_the_same() -> None:
    assert not is_steady([1.0] * (STEADY - 1))
    assert is_steady([9.0] * 3 + [1.0] * STEADY)
    assert not is_steady([1.0] * 9 + [3.0] + [1.0] * 10)
    assert not is_steady([1.0 - 0.02 * n for n in range(STEADY)])
