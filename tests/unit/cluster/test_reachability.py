"""An API server that does not answer is told once, and once more when it answers again."""

from __future__ import annotations

import itertools
import logging
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rightpool.cli.logs import set_up_logging
from rightpool.cluster.client import ClusterClient, Request
from rightpool.cluster.errors import Forbidden, Unreachable
from rightpool.cluster.lease import LeaseElector
from rightpool.cluster.reachability import Reachability
from rightpool.cluster.resources import NODES
from rightpool.settings import LogFormat
from tests.unit.handlers.api_server import ApiServer

REQUEST = Request("GET", "/api/v1/nodes")


@pytest.fixture
def own_logging() -> Iterator[None]:
    """The operator's, and afterwards what was there."""
    root, noisy = logging.getLogger(), logging.getLogger("urllib3")
    before = root.handlers[:], root.level, noisy.level
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    noisy.setLevel(before[2])


def test_a_server_that_is_gone_is_one_line_for_all_clients(
    tmp_path: Path, own_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ApiServer()
    kubeconfig = server.kubeconfig(tmp_path)
    server.close()
    gone = tmp_path / "gone"
    gone.write_text(kubeconfig.read_text().replace(f":{server.port}", f":{port}"))
    set_up_logging(LogFormat.TEXT, "INFO")
    hook = Reachability()
    clients = [ClusterClient.connect(gone, hook=hook) for _ in range(2)]
    for client in clients:
        for _ in range(2):
            with pytest.raises(Unreachable, match="Connection refused"):
                client.list_all(NODES)
    elector = LeaseElector(clients[0], namespace="default", name="rightpool", identity="me", duration=15.0)
    assert not elector.step()
    for client in clients:
        client.close()
    (line,) = capsys.readouterr().err.splitlines()
    assert f"the API server does not answer: http://127.0.0.1:{port}: " in line and "Connection refused" in line


def test_each_loss_and_each_return_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    ticks = itertools.count(0.0, 5.0)
    hook = Reachability(clock=lambda: next(ticks))

    def fine(request: Request) -> dict[str, Any]:
        return {}

    def forbidden(request: Request) -> dict[str, Any]:
        raise Forbidden("not yours", status=403)

    def lost(request: Request) -> dict[str, Any]:
        raise Unreachable("refused")

    caplog.set_level(logging.INFO, "rightpool.cluster.reachability")
    for send in (fine, lost, lost, lost, forbidden, fine, lost, fine, fine):
        with suppress(Forbidden, Unreachable):
            hook(REQUEST, send)
    assert caplog.messages == [
        "the API server does not answer: refused",
        "the API server answers again after 5 s",
        "the API server does not answer: refused",
        "the API server answers again after 5 s",
    ]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"] * 2
