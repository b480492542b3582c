"""`rightpool operator` as a process: how it ends, and its messages."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.patience import PATIENCE, eventually
from tests.unit.handlers.api_server import ApiServer, Refusal, answers

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def server() -> Iterator[ApiServer]:
    server = ApiServer()
    yield server
    server.close()


@pytest.fixture
def start(server: ApiServer, tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def begin(**settings: str) -> subprocess.Popen[str]:
            variables = {
                "RIGHTPOOL_IDENTITY": "me",
                "RIGHTPOOL_LEASE_NAMESPACE": "n",
                "RIGHTPOOL_LEASE_DURATION": "30",  # held also where the process did not run for a while
                "RIGHTPOOL_INTERVAL": "0.2",
                "RIGHTPOOL_METRICS_PORT": "0",
                "RIGHTPOOL_LIVENESS_PORT": "0",
                "RIGHTPOOL_BIND_ADDRESS": "127.0.0.1",
                "RIGHTPOOL_LOG_FORMAT": "text",
                **settings,
            }
            command = [sys.executable, "-m", "rightpool.cli.main", "operator", "--kubeconfig"]
            process = subprocess.Popen(
                [*command, str(server.kubeconfig(tmp_path))],
                env={**os.environ, **variables},
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield begin


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, output = process.communicate(timeout=PATIENCE)
    return process.returncode, output


def test_a_leader_releases_the_lease_on_sigterm(server: ApiServer, start: Start) -> None:
    process = start()
    eventually(lambda: server.holder == "me", "it leads")
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 0
    assert server.leases and server.holder == ""


def test_an_operator_that_waits_for_the_api_server_ends_on_sigterm(server: ApiServer, start: Start) -> None:
    server.refuse = lambda request: Refusal(503)
    process = start()
    eventually(lambda: len(server.requests) > 3, "it asks")
    process.send_signal(signal.SIGTERM)
    code, output = ended(process)
    assert code == 0
    assert "does not say what it serves: out of order; waiting for it" in output


def test_a_fatal_problem_is_logged_and_ends_the_process(server: ApiServer, start: Start) -> None:
    process = start()
    eventually(lambda: server.holder == "me", "it leads")
    server.refuse = lambda request: Refusal(404) if request.path.endswith("/profiledjobs") else answers(request)
    server.end_watches()
    code, output = ended(process)
    assert code == 1
    assert "the operator has ended: watching has failed" in output.splitlines()[-1]


@pytest.mark.parametrize("port", ["RIGHTPOOL_LIVENESS_PORT", "RIGHTPOOL_METRICS_PORT"])
def test_a_used_port_is_one_sentence(start: Start, port: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code, output = ended(start(**{port: str(listener.getsockname()[1])}))
    assert code == 1
    assert "the operator can't start: " in output and "Traceback" not in output
