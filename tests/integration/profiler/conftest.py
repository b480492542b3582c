"""A pod without Kubernetes: a shared directory with the agent, a sidecar process, and programs run as a user's."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rightpool import contract

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "the token of this Revision"
_SIDECAR = """
import asyncio, dataclasses, os
from rightpool_profiler.sidecar import Settings, run
asyncio.run(run(dataclasses.replace(Settings.read(os.environ), port=int(os.environ["PORT"]))))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment(**more: str) -> dict[str, str]:
    """This process' environment without anything of Python's or of the product's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RIGHTPOOL", "JAX_", "XLA_", "PYTEST"))}
    return {**kept, "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", **more}


@dataclass
class Pod:
    shared: Path
    port: int
    chips: int = 1
    mode: str = "Signal"
    sidecar: subprocess.Popen[bytes] | None = None
    programs: list[subprocess.Popen[str]] = field(default_factory=list)

    def start_sidecar(self) -> None:
        environment = clean_environment(
            PYTHONPATH=os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar"))),
            PORT=str(self.port),
            **{
                contract.ENV_SHARED_DIR: str(self.shared),
                contract.ENV_TOKEN_SHA256: hashlib.sha256(TOKEN.encode()).hexdigest(),
                contract.ENV_CHECKPOINT_MODE: self.mode,
                contract.ENV_CHECKPOINT_SIGNAL: "SIGUSR1",
                contract.ENV_CHIPS: str(self.chips),
            },
        )
        self.sidecar = subprocess.Popen([sys.executable, "-c", _SIDECAR], env=environment, cwd="/")
        self.until(lambda: self.get(contract.PATH_HEALTH) == "ok\n")

    def environment(self, **more: str) -> dict[str, str]:
        """What the operator sets in the user's container."""
        agent = str(self.shared / "agent")
        path = more.pop("PYTHONPATH", None)
        return clean_environment(
            PYTHONPATH=os.pathsep.join((agent, path)) if path else agent,
            **{contract.ENV_SHARED_DIR: str(self.shared), contract.ENV_TRACE: "Auto", **more},
        )

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        program = subprocess.Popen(
            [sys.executable, *command],
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self.programs.append(program)
        return program

    def get(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:
            return None

    def post(self, body: object, token: str = TOKEN) -> tuple[int, dict[str, str]]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{contract.PATH_CHECKPOINT}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def metrics(self) -> dict[str, float]:
        """`name{labels}` → value."""
        page = self.get(contract.PATH_METRICS) or ""
        rows = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def page_with(self, name: str) -> dict[str, float]:
        """The first page that has it; the next one may have it no more."""
        page: dict[str, float] = {}

        def has() -> bool:
            page.clear()
            page.update(self.metrics())
            return name in page

        self.until(has)
        return page

    def until(self, condition: Callable[[], object], seconds: float = 180.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} s; last page:\n{self.get(contract.PATH_METRICS)}"
            time.sleep(0.1)

    def stop(self) -> None:
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.communicate()
        if self.sidecar is not None:
            self.sidecar.send_signal(signal.SIGTERM)
            self.sidecar.wait(60)


@pytest.fixture
def make_pod() -> Iterator[Callable[..., Pod]]:
    """Pods with an installed agent and no sidecar yet. Their directory must be short: it holds a socket."""
    pods: list[Pod] = []

    def make(**settings: object) -> Pod:
        shared = Path(tempfile.mkdtemp(prefix="rightpool-", dir="/tmp"))
        subprocess.run(
            [sys.executable, "-m", "rightpool_profiler", "install"],
            env=clean_environment(
                PYTHONPATH=os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar"))),
                **{contract.ENV_SHARED_DIR: str(shared)},
            ),
            check=True,
            cwd="/",
        )
        pods.append(Pod(shared, free_port(), **settings))  # type: ignore[arg-type]
        return pods[-1]

    yield make
    for pod in pods:
        pod.stop()
        shutil.rmtree(pod.shared, ignore_errors=True)


@pytest.fixture
def pod(make_pod: Callable[..., Pod]) -> Pod:
    """One pod with its sidecar running."""
    made = make_pod()
    made.start_sidecar()
    return made
