"""An operator is started while the API server is out of order, or loses it later: real kopf, a server that refuses."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from rightpool.cli.decider import Decider
from rightpool.handlers import login
from rightpool.handlers import operator as start
from rightpool.handlers.operator import run_operator
from rightpool.runtime import health
from rightpool.runtime.loop import Planner
from rightpool.runtime.observe import watches
from rightpool.runtime.observe.watched import watched
from rightpool.runtime.wiring import Operator
from rightpool.settings import OperatorSettings
from rightpool.workloads.kinds.registry import KINDS
from tests.patience import pauses
from tests.unit.handlers.api_server import ApiServer, Refusal, Refuse, answers, group_entry
from tests.unit.runtime.act.test_invented_kind import WIDGETS, WidgetKind

WATCHED = len(watched())


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.close()


class Running:
    """An operator in this process."""

    def __init__(self, operator: Operator, port: int, task: asyncio.Task[str | None]) -> None:
        self.operator = operator
        self.port = port
        self.task = task

    async def probe(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{self.port}{path}") as answer:
                return answer.status, (await answer.text()).strip()

    async def listens(self) -> bool:
        try:
            return bool(await self.probe("/healthz"))
        except aiohttp.ClientConnectionError:
            return False

    async def unready(self, reason: str) -> bool:
        return await self.probe("/readyz") == (503, reason)

    async def ready(self) -> bool:
        return (await self.probe("/readyz"))[0] == 200

    @property
    def leads(self) -> bool:
        return self.operator.metrics.registry.get_sample_value("rightpool_operator_leader") == 1.0


@pytest.fixture
def run(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    config = server.kubeconfig(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setattr(start, "DISCOVERY_SECONDS", 0.2)

    @asynccontextmanager
    async def running() -> AsyncIterator[Running]:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
        settings = OperatorSettings(
            kubeconfig=config,
            identity="me",
            lease_namespace="n",
            lease_duration=2,
            interval=0.2,
            metrics_port=0,
            liveness_port=port,
            bind_address="127.0.0.1",
        )
        reader: Any = None  # there is no job to measure
        operator = Operator(settings, decide=Decider(), reader=reader, servers=reader)
        stop = asyncio.Event()
        task = asyncio.create_task(run_operator(operator, settings, stop_flag=stop))
        running = Running(operator, port, task)
        try:
            await eventually(running.listens, "it listens")
            yield running
        finally:
            stop.set()
            await task

    return running


async def eventually(check: Callable[[], Any], what: str) -> None:
    for pause in pauses():
        result = check()
        if asyncio.iscoroutine(result):
            result = await result
        if result:
            return
        await asyncio.sleep(pause)
    pytest.fail(what)


def every_request(status: int, **headers: str) -> Refuse:
    return lambda request: Refusal(status, headers)


def groups(*names: str) -> Refuse:
    """The list of groups lacks those that another part of the API server, which is not there yet, would add."""
    listed = {"groups": [group_entry(name) for name in names]}
    return lambda request: Refusal(200, body=listed) if request.path == "/apis" else None


def without(path: str, status: int) -> Refuse:
    return lambda request: Refusal(status) if request.path == path else None


def without_members(path: str, *kept: str) -> Refuse:
    entries = [{"name": name, "kind": name, "singularName": name, "namespaced": True, "verbs": []} for name in kept]
    return lambda request: Refusal(200, body={"resources": entries}) if request.path == path else None


STARTS = {
    "503 for everything": every_request(503),
    "500 for everything": every_request(500),
    "429 for everything": every_request(429, **{"Retry-After": "1"}),
    "401 for everything": every_request(401),
    "403 for everything": every_request(403),
    "no group of ours yet": groups("coordination.k8s.io"),
    "no group at all": groups(),
    "our group is 404": without("/apis/rightpool.dev/v1alpha1", 404),
    "our group is 503": without("/apis/rightpool.dev/v1alpha1", 503),
    "our group is empty": without_members("/apis/rightpool.dev/v1alpha1"),
    "core group without verbs": without_members("/api/v1", "pods", "nodes", "namespaces"),
    "one list fails": without("/apis/rightpool.dev/v1alpha1/profiledjobs", 503),
    "one list is forbidden": without("/api/v1/nodes", 403),
}


@pytest.mark.parametrize("name", STARTS)
async def test_an_operator_waits_until_the_api_server_serves_everything(
    name: str, server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "SAME_CREDENTIALS_SECONDS", 0.1)
    server.refuse = STARTS[name]
    async with run() as running:
        await eventually(lambda: len(server.requests) > 12, "the operator keeps asking")
        status, reason = await running.probe("/readyz")
        assert (status == 503 and "profiledjobs.rightpool.dev" in reason) or "nodes" in reason
        if name == "one list is forbidden":
            await eventually(lambda: running.unready("not watched: nodes (HTTP 403)"), "it says what is forbidden")
        assert (await running.probe("/healthz")) == (200, "ok"), "a restart would not help"
        assert server.holder == ""
        server.refuse = answers
        await eventually(running.ready, "ready")
        await eventually(lambda: server.holder == "me" and running.leads, "leader")
        assert sum(server.watching.values()) == WATCHED
        assert not running.task.done()


async def test_a_kind_that_is_not_installed_is_off_and_the_operator_says_so(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(KINDS, "widget", WidgetKind())
    async with run() as running:
        await eventually(running.ready, "ready")
        await eventually(lambda: server.holder == "me" and running.leads, "leader")
        assert sum(server.watching.values()) == WATCHED
        assert "Widget is not installed: its jobs do not run" in caplog.text
        asked = len(server.requests)
        await eventually(lambda: len(server.requests) > asked + 5, "it goes on")
        assert not any("widgets" in request for request in server.requests[asked:])


async def test_the_operator_ends_to_be_started_anew_when_a_kind_is_installed(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "widget", WidgetKind())
    monkeypatch.setattr(start, "INSTALLED_SECONDS", 0.1)
    monkeypatch.setattr(start, "GUARD_SECONDS", 0.1)
    async with run() as running:
        await eventually(running.ready, "ready")
        assert not running.task.done()
        server.install(WIDGETS)
        await eventually(running.task.done, "it ends")
        assert running.task.result() == "Widget is installed by now"


async def test_a_kind_that_is_removed_does_not_stop_the_rest(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its watch nothing is decided: the operator is started anew, without the kind."""
    monkeypatch.setitem(KINDS, "widget", WidgetKind())
    monkeypatch.setattr(start, "INSTALLED_SECONDS", 0.1)
    monkeypatch.setattr(start, "GUARD_SECONDS", 0.1)
    server.install(WIDGETS)
    async with run() as running:
        await eventually(running.ready, "ready")
        server.remove(WIDGETS)
        await eventually(running.task.done, "it ends")
        assert running.task.result() == "Widget is not installed any more"
    async with run() as running:
        await eventually(running.ready, "ready without it")


async def test_an_operator_without_all_watches_ends_with_a_message(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two API servers behind one address, one is still starting: kopf has asked that one."""
    monkeypatch.setattr(watches, "ABANDONED_SECONDS", 1.0)
    half = groups("coordination.k8s.io", "batch")

    def refuse(request: web.Request) -> Refusal | None:
        return half(request) if request.headers["User-Agent"].startswith("kopf") else None

    server.refuse = refuse
    async with run() as running:
        await eventually(running.task.done, "it ends")
        problem = running.task.result()
        assert problem is not None and problem.startswith("nothing has asked for a watch of profiledjobs.rightpool.dev")
        assert server.leases == {}


async def test_liveness_fails_for_an_abandoned_watch(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the process not come to its end by itself."""
    async with run() as running:
        await eventually(running.ready, "ready")
        monkeypatch.setattr(running.operator.watches, "abandoned", lambda: "nothing has asked for a watch of pods")
        assert await running.probe("/healthz") == (503, "nothing has asked for a watch of pods")


async def test_liveness_tells_of_a_planner_that_does_not_begin(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server answers."""
    assert health.START_SECONDS <= 60.0
    monkeypatch.setattr(health, "START_SECONDS", 0.5)
    monkeypatch.setattr(health, "TIMEOUTS", 0)
    hanging = threading.Event()
    monkeypatch.setattr(Planner, "cycle", lambda self: hanging.wait())
    async with run() as running:
        await eventually(lambda: running.operator.dead() is not None, "liveness fails")
        status, reason = await running.probe("/healthz")
        assert status == 503 and reason.startswith("the planner has not begun after ")
        hanging.set()


@pytest.mark.parametrize("away", ["503 for everything", "401 for everything", "one list fails"])
async def test_liveness_lets_an_operator_be_whose_api_server_is_away(
    away: str, server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "START_SECONDS", 0.0)
    monkeypatch.setattr(health, "TIMEOUTS", 0)
    server.refuse = STARTS[away]
    async with run() as running:
        watchdog = running.operator._health
        await eventually(lambda: watchdog._progress_at is not None, "the first attempt has failed")
        asked = len(server.requests)
        await eventually(lambda: len(server.requests) > asked + 6, "it asks again")
        assert await running.probe("/healthz") == (200, "ok")
        assert (await running.probe("/readyz"))[0] == 503


async def test_a_leader_without_watches_loses_the_lease_and_recovers_by_itself(
    server: ApiServer, run: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "GRACE_SECONDS", 0.5)
    async with run() as running:
        await eventually(lambda: running.leads, "leader")
        await eventually(running.ready, "ready")
        fleet = running.operator.metrics.fleet
        await eventually(lambda: fleet.measured, "it exports metrics of the fleet")
        server.refuse = lambda request: Refusal(503) if request.query.get("watch") else None
        server.end_watches()
        await eventually(lambda: not running.leads, "not leader")
        await eventually(lambda: not fleet.measured, "what it knew is left to the next leader to tell")
        assert (await running.probe("/readyz"))[0] == 503
        assert (await running.probe("/healthz"))[0] == 200
        renewed = sum(request.startswith("PUT") for request in server.requests)
        lists = len(server.requests)
        await eventually(lambda: len(server.requests) > lists + WATCHED, "kopf goes on to ask")
        assert sum(request.startswith("PUT") for request in server.requests) == renewed, "the Lease runs out"
        server.refuse = answers
        await eventually(running.ready, "ready again")
        await eventually(lambda: running.leads, "leader again")


async def test_a_follower_with_all_watches_is_ready(server: ApiServer, run: Callable[[], Any]) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/n/leases/rightpool-operator"
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 3600, "renewTime": "now"}
    server.leases[path] = {"metadata": {"name": "rightpool-operator", "resourceVersion": "1"}, "spec": spec}
    async with run() as running:
        await eventually(running.ready, "ready")
        asked = len(server.requests)
        await eventually(lambda: any("leases" in request for request in server.requests[asked:]), "it would lead")
        assert server.holder == "other" and not running.leads


async def test_a_removed_resource_ends_the_process_with_a_message(server: ApiServer, run: Callable[[], Any]) -> None:
    async with run() as running:
        await eventually(running.ready, "ready")
        server.refuse = without("/apis/rightpool.dev/v1alpha1/placementpolicies", 404)
        server.end_watches()
        await eventually(running.task.done, "it ends")
        problem = running.task.result()
        assert problem is not None and problem.startswith("watching has failed")
