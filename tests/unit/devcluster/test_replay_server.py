"""The server: the contract's pages on each pod's own address, over real sockets on 127.0.0.0/8."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from devcluster.replay.server import Sidecars, listen
from rightpool import contract
from tests.patience import PATIENCE
from tests.unit.devcluster.replay_world import NOW, TOKEN, World, metrics_of, pod


@dataclass
class Served:
    world: World
    port: int
    now: float

    async def ask(
        self, index: int, method: str, path: str, body: str | None = None, token: str | None = None
    ) -> tuple[int, str]:
        return await asyncio.to_thread(self._ask, index, method, path, body, token)

    def _ask(self, index: int, method: str, path: str, body: str | None, token: str | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(f"127.9.0.{index + 1}", self.port, timeout=PATIENCE)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    async def metrics(self, index: int) -> dict[str, float]:
        status, page = await self.ask(index, "GET", "/metrics")
        assert status == 200
        return metrics_of(page)


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    servers: list[asyncio.Server] = []

    async def start(*pods: Any) -> Served:
        world = World(*pods)
        served = Served(world, 0, NOW + 100)
        server = await listen(Sidecars(world.fleet, clock=lambda: served.now), "0.0.0.0", 0)
        servers.append(server)
        served.port = server.sockets[0].getsockname()[1]
        return served

    yield start
    for server in servers:
        server.close()


async def test_each_address_serves_one_pod(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0), pod(1, job="other", throughput="0.5"))
    fast, slow = await served.metrics(0), await served.metrics(1)
    assert fast[contract.SAMPLES] == pytest.approx(40_000, rel=0.02)
    assert slow[contract.SAMPLES] == pytest.approx(20_000, rel=0.02)


async def test_the_page_follows_the_contract(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0, world=2, checkpoint_every="1m", trace="true"), pod(1, world=2))
    page = await served.metrics(0)
    for chip in range(4):
        label = f'{{chip="{chip}"}}'
        assert page[contract.CHIP_BUSY + label] == pytest.approx(0.9, rel=0.011)
        assert page[contract.CHIP_COMPUTE_ACTIVE + label] == pytest.approx(0.8, rel=0.011)
        assert page[contract.CHIP_MATRIX_ACTIVE + label] == pytest.approx(0.4, rel=0.011)
        assert page[contract.CHIP_MEMORY_BANDWIDTH + label] == pytest.approx(0.5, rel=0.011)
        assert page[contract.CHIP_MEMORY_USED + label] == 10 * 2**30
        assert page[contract.CHIP_MEMORY_TOTAL + label] == 22 * 2**30
        assert page[contract.CHIP_POWER + label] == pytest.approx(200, rel=0.011)
        assert page[contract.CHIP_ENERGY + label] == pytest.approx(200 * 100)
    assert page[contract.STEPS] == page[f"{contract.STEP_SECONDS}_count"] == pytest.approx(1000, rel=0.02)
    assert page[contract.SAMPLES] == page[contract.STEPS] * 10 * 4
    assert page[f"{contract.STEP_SECONDS}_sum"] / page[f"{contract.STEP_SECONDS}_count"] == pytest.approx(0.1, rel=0.02)
    assert page[f'{contract.STEP_SECONDS}_bucket{{le="+Inf"}}'] == page[contract.STEPS]
    assert page[f'{contract.STEP_SHARE}{{part="exposed_communication"}}'] == pytest.approx(0.2)
    assert sum(value for name, value in page.items() if name.startswith(contract.STEP_SHARE)) == pytest.approx(1)
    assert page[contract.CHECKPOINT_TIMESTAMP] == NOW + 60
    assert page[f'{contract.SOURCE_UP}{{source="replay"}}'] == 1
    for name in page:
        assert not any(label in name for label in ("namespace=", "pod=", "profiledjob=", "revision="))


async def test_without_a_trace_only_the_wait_for_input_is_known(serve: Callable[..., Any]) -> None:
    page = await (await serve(pod(0))).metrics(0)
    assert {name: share for name, share in page.items() if name.startswith(contract.STEP_SHARE)} == {
        f'{contract.STEP_SHARE}{{part="input"}}': pytest.approx(0.02)
    }


async def test_every_field_has_a_quality(serve: Callable[..., Any]) -> None:
    page = await (await serve(pod(0))).metrics(0)
    fields = {name.split('field="')[1].split('"')[0] for name in page if name.startswith(contract.FIELD_QUALITY)}
    shown = {name.partition("{")[0] for name in page} - {contract.FIELD_QUALITY, contract.SOURCE_UP}
    assert {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in shown} == fields


async def test_memory_can_be_set_by_the_job(serve: Callable[..., Any]) -> None:
    page = await (await serve(pod(0, memory="14"))).metrics(0)
    assert page[f'{contract.CHIP_MEMORY_USED}{{chip="0"}}'] == 14 * 2**30


async def test_a_pod_without_a_row_exports_only_that_its_source_is_down(serve: Callable[..., Any]) -> None:
    assert await (await serve(pod(0, workload="other"))).metrics(0) == {f'{contract.SOURCE_UP}{{source="replay"}}': 0}


async def test_a_throttled_pool_exports_it(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0))
    served.world.fleet.set_faults({"cheap": "{throughput: 0.5, throttle: 0.3}"}, NOW + 100)
    before = await served.metrics(0)
    served.now += 100
    after = await served.metrics(0)
    assert after[contract.SAMPLES] - before[contract.SAMPLES] == pytest.approx(20_000, rel=0.02)
    assert after[f'{contract.CHIP_THROTTLE}{{chip="0",reason="software_thermal"}}'] == 0.3
    assert after[f'{contract.CHIP_MATRIX_ACTIVE}{{chip="0"}}'] == pytest.approx(0.2, rel=0.011)


async def test_a_straggler_makes_the_other_pods_wait(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0, world=2), pod(1, world=2, throughput="0.5"))
    waits, works = await served.metrics(0), await served.metrics(1)
    assert works[f'{contract.CHIP_BUSY}{{chip="0"}}'] == pytest.approx(0.9, rel=0.011)
    assert waits[f'{contract.CHIP_BUSY}{{chip="0"}}'] == pytest.approx(0.45, rel=0.011)


async def test_after_a_lost_peer_pods_stay_in_a_collective(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0, world=2), pod(1, world=2))
    served.world.fleet.set_faults({"cheap": "lose: job-1"}, NOW + 100)
    before = await served.metrics(0)
    served.now += 50
    after = await served.metrics(0)
    assert after[contract.SAMPLES] == before[contract.SAMPLES]
    assert after[f'{contract.CHIP_BUSY}{{chip="0"}}'] == pytest.approx(1, rel=0.011)
    assert after[f'{contract.CHIP_MATRIX_ACTIVE}{{chip="0"}}'] == 0


@pytest.mark.parametrize("how", ["silent", "lost", "absent"])
async def test_a_dead_pod_closes_connections_without_a_response(serve: Callable[..., Any], how: str) -> None:
    served = await serve(pod(0, **{"silent": {"silent": "true"}, "lost": {"lose": "true"}, "absent": {}}[how]))
    for path in ("/metrics", "/healthz"):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            await served.ask(1 if how == "absent" else 0, "GET", path)


async def test_a_checkpoint_needs_the_token(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0))
    for token in (None, "wrong", ""):
        status, text = await served.ask(0, "POST", "/checkpoint", '{"id": "d-1"}', token)
        assert status == 401 and "token" in text
    status, text = await served.ask(0, "POST", "/checkpoint", '{"id": "d-1"}', TOKEN)
    assert status == 202 and json.loads(text) == {"id": "d-1", "state": "signalled"}
    assert contract.CHECKPOINT_TIMESTAMP not in await served.metrics(0)
    served.now += 2
    assert (await served.metrics(0))[contract.CHECKPOINT_TIMESTAMP] == served.now
    profile = json.loads((await served.ask(0, "GET", "/profile"))[1])
    assert profile["checkpoint"] == {
        "mode": "Signal",
        "savedAt": served.now,
        "id": "d-1",
        "requestedAt": served.now - 2,
        "state": "saved",
    }


async def test_a_job_without_checkpoints_reports_it(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0, mode="None"))
    status, text = await served.ask(0, "POST", "/checkpoint", '{"id": "d-1"}', TOKEN)
    assert status == 409 and "does not checkpoint" in text


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/healthz", None, 200),
        ("GET", "/healthz?verbose=1", None, 200),
        ("GET", "/profile", None, 200),
        ("GET", "/other", None, 404),
        ("POST", "/metrics", "", 405),
        ("GET", "/checkpoint", None, 405),
        ("POST", "/checkpoint", "{}", 400),
        ("POST", "/checkpoint", '{"id": 3}', 400),
        ("POST", "/checkpoint", '{"id": ""}', 400),
        ("POST", "/checkpoint", "not json", 400),
        ("POST", "/checkpoint", json.dumps({"id": "x" * 65}), 400),
        ("POST", "/checkpoint", "x" * 5000, 413),
    ],
)
async def test_responses_equal_those_of_the_real_sidecar(
    serve: Callable[..., Any], method: str, path: str, body: str | None, status: int
) -> None:
    assert (await (await serve(pod(0))).ask(0, method, path, body, TOKEN))[0] == status


async def test_connections_are_persistent_and_requests_may_be_fragmented(serve: Callable[..., Any]) -> None:
    served = await serve(pod(0))
    reader, writer = await asyncio.open_connection("127.9.0.1", served.port)
    for pieces in ([b"GET /healthz HTTP/1.1\r\n\r\n"] * 2, [b"GET /hea", b"lthz HTTP/1.1\r\nHost: x\r\n", b"\r\n"]):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        for _ in range(2 if len(pieces) == 2 else 1):
            assert await reader.readuntil(b"ok\n")
    writer.write(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).endswith(b"ok\n")
    writer.close()


@pytest.mark.parametrize("head", [b"nonsense\r\n\r\n", b"GET /\r\n\r\n", b"x" * 9000])
async def test_input_that_is_not_http_is_refused_and_closed(serve: Callable[..., Any], head: bytes) -> None:
    served = await serve(pod(0))
    reader, writer = await asyncio.open_connection("127.9.0.1", served.port)
    writer.write(head)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    writer.close()
