"""HTTP at its edges: limits, tokens, and the words of its refusals."""

import asyncio
import hashlib
import json
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from rightpool import contract
from rightpool.pod_client import PodRequest, exchange
from rightpool_profiler.checkpoint import Checkpoints, Mode
from rightpool_profiler.server import MAX_CONNECTIONS, Server
from rightpool_profiler.state import State
from rightpool_profiler.traces.requested import Requested
from tests.patience import PATIENCE, pauses

from .test_state import report

TOKEN = "secret"
AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n"


class Site:
    def __init__(self, mode: Mode, directory: Path) -> None:
        self.state = State(10.0, 1)
        self.directory = directory
        self.checkpoints = Checkpoints(mode, "SIGUSR1", directory)
        requested = Requested(directory, directory, 0.0)
        self.server = Server(self.state, self.checkpoints, requested, hashlib.sha256(TOKEN.encode()).hexdigest())
        self.port = 0

    async def ask(self, raw: str) -> tuple[int, str, str]:
        """(status, head, body) of one request; status 0 if the connection was cut."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(raw.encode())
            await writer.drain()
            answer = (await asyncio.wait_for(reader.read(), PATIENCE)).decode()
        except ConnectionError:
            return 0, "", ""
        finally:
            writer.close()
        head, _, body = answer.partition("\r\n\r\n")
        return (int(head.split(" ")[1]) if head else 0), head, body

    async def post(
        self, body: str, headers: str = AUTHORIZED, length: int | None = None, path: str = "/checkpoint"
    ) -> tuple[int, dict[str, str]]:
        size = len(body.encode()) if length is None else length
        status, _, answer = await self.ask(f"POST {path} HTTP/1.1\r\n{headers}Content-Length: {size}\r\n\r\n{body}")
        return status, json.loads(answer)


def port_of(server: asyncio.Server) -> int:
    """Its IPv4 port: asked for any, the two families get different ones."""
    return int(next(one.getsockname()[1] for one in server.sockets if one.family == socket.AF_INET))


@pytest_asyncio.fixture
async def site(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    made = Site(getattr(request, "param", Mode.SIGNAL), tmp_path)
    server = await made.server.start(0)
    made.port = port_of(server)
    yield made
    server.close()


def live(site: Site) -> None:
    """A process has made a step just now."""
    site.state.apply(report(), time.monotonic(), time.time())


async def test_pages(site: Site) -> None:
    live(site)
    assert (await site.ask("GET /healthz HTTP/1.1\r\n\r\n"))[::2] == (200, "ok\n")
    status, head, body = await site.ask("GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == 200 and "text/plain; version=0.0.4" in head and contract.STEPS in body
    status, _, body = await site.ask("GET /profile HTTP/1.1\r\n\r\n")
    profile = json.loads(body)
    assert profile["fields"][contract.STEPS] == {"quality": "measured", "values": [{"labels": {}, "value": 1}]}
    assert profile["sources"] == {"jax-steps": True}
    assert profile["processes"][0]["pid"] == 1
    assert profile["checkpoint"] == {"mode": "Signal", "savedAt": None}


async def test_the_operators_client_reads_it(site: Site) -> None:
    live(site)
    page = PodRequest("127.0.0.1", contract.PATH_METRICS)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    save = PodRequest("127.0.0.1", contract.PATH_CHECKPOINT, "POST", headers, b'{"id": "m-1"}', range(200, 300))
    assert contract.STEPS in await asyncio.to_thread(exchange, page, site.port, 60.0, 2**20)
    assert "m-1" in await asyncio.to_thread(exchange, save, site.port, 60.0, 2**20)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", 404),
        ("POST /metrics HTTP/1.1\r\n\r\n", 405),
        ("GET /checkpoint HTTP/1.1\r\n\r\n", 405),
        ("nonsense\r\n\r\n", 400),
        ("GET /metrics HTTP/1.1\r\nX: " + "x" * 9000 + "\r\n\r\n", 431),
        (f"POST /checkpoint HTTP/1.1\r\n{AUTHORIZED}Content-Length: -1\r\n\r\n", 400),
        (f"POST /checkpoint HTTP/1.1\r\n{AUTHORIZED}Content-Length: ٣\r\n\r\n", 400),
        (f"POST /checkpoint HTTP/1.1\r\n{AUTHORIZED}Transfer-Encoding: chunked\r\n\r\n", 400),
    ],
)
async def test_refusals(site: Site, raw: str, status: int) -> None:
    assert (await site.ask(raw))[0] == status


@pytest.mark.parametrize(
    "headers", ["", "Authorization: Bearer wrong\r\n", f"Authorization: Basic {TOKEN}\r\n", "Authorization: Bearer\r\n"]
)
async def test_a_request_without_the_token_is_refused(site: Site, headers: str) -> None:
    live(site)
    assert (await site.post('{"id": "d-7"}', headers))[0] == 401
    assert (await site.post('{"id": "now"}', headers, path="/trace"))[0] == 401
    assert list(site.directory.iterdir()) == []


async def test_a_trace_is_asked_for_and_a_repeat_is_the_same_request(site: Site) -> None:
    (site.directory / "commands").mkdir()
    live(site)
    status, answer = await site.post('{"id": "now", "rank": 0}', path="/trace")
    assert (status, answer["state"]) == (202, "waiting")
    assert await site.post('{"id": "now"}', path="/trace") == (202, answer), "rank 0 is the default"
    status, every = await site.post('{"id": "now", "rank": "all"}', path="/trace")
    assert (status, every["rank"], every["state"]) == (202, "all", "waiting")
    assert (await site.ask("GET /trace HTTP/1.1\r\n\r\n"))[0] == 405


@pytest.mark.parametrize("rank", ["-1", "true", "1.5", '"0"', "1000001", "null", "1e400"])
async def test_ranks_that_are_none(site: Site, rank: str) -> None:
    assert (await site.post(f'{{"id": "now", "rank": {rank}}}', path="/trace"))[0] == 400


async def test_without_a_digest_every_request_is_refused(tmp_path: Path) -> None:
    server = await Server(
        State(10, 1), Checkpoints(Mode.SIGNAL, "SIGUSR1", tmp_path), Requested(tmp_path, tmp_path, 0.0), ""
    ).start(0)
    probe = Site(Mode.SIGNAL, tmp_path)
    probe.port = port_of(server)
    assert (await probe.post('{"id": "d-7"}', "Authorization: Bearer \r\n"))[0] == 401
    server.close()


@pytest.mark.parametrize(
    "body", ["", "[]", "{", "[" * 4000, '{"id": 7}', '{"id": ""}', '{"id": "a\\nb"}', json.dumps({"id": "x" * 65})]
)
async def test_invalid_bodies(site: Site, body: str) -> None:
    live(site)
    assert (await site.post(body))[0] == 400


async def test_a_body_that_is_too_long_is_not_read(site: Site) -> None:
    assert (await site.post("", length=5000))[0] == 413


async def test_a_request_is_passed_to_the_agent_once(site: Site) -> None:
    assert (await site.post('{"id": "d-7"}'))[0] == 409, "there is nothing to save yet"
    live(site)
    assert await site.post('{"id": "d-7"}') == (202, {"id": "d-7", "state": "requested"})
    file = site.directory / "checkpoint.json"
    left = json.loads(file.read_text())
    assert (left["id"], left["signal"]) == ("d-7", "SIGUSR1")
    file.unlink()
    assert await site.post('{"id": "d-7"}') == (202, {"id": "d-7", "state": "requested"})
    assert not file.exists(), "the same request is not made again"
    assert (await site.post('{"id": "d-8"}'))[0] == 202
    assert file.exists()


@pytest.mark.parametrize("site", [Mode.PERIODIC], indirect=True)
async def test_a_periodic_program_is_not_disturbed(site: Site) -> None:
    live(site)
    assert await site.post('{"id": "d-7"}') == (202, {"id": "d-7", "state": "waiting"})
    assert list(site.directory.iterdir()) == []


@pytest.mark.parametrize("site", [Mode.NONE], indirect=True)
async def test_a_program_that_cannot_save(site: Site) -> None:
    live(site)
    assert await site.post('{"id": "d-7"}') == (409, {"message": "this job does not checkpoint"})


async def test_a_missing_directory_is_reported(site: Site) -> None:
    live(site)
    site.directory.rmdir()
    status, answer = await site.post('{"id": "d-7"}')
    assert (status, answer["message"]) == (409, "cannot reach the program: No such file or directory")


async def test_connections_are_bounded(site: Site) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(MAX_CONNECTIONS)]
    await answered(site, 0)
    for _, writer in idle:
        writer.close()
    await answered(site, 200)


async def answered(site: Site, status: int) -> None:
    """By and by: it has yet to see connections that came or went."""
    for pause in pauses():
        if (await site.ask("GET /healthz HTTP/1.1\r\n\r\n"))[0] == status:
            return
        await asyncio.sleep(pause)
    pytest.fail(f"never answered by {status}")
