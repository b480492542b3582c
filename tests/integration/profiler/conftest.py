"""A pod without Kubernetes: a shared directory with the agent, a sidecar process, and programs run as a user's.

The installed agents are in a hurry: what they do once a second they do ten times, so that programs can be short, and
the end of a program waits longer for their last word, so that no test depends on the speed of the machine.
"""

import compileall
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any, Final

import pytest

from rightpool import contract
from tests.integration.profiler.forking import Forked, ForkHost
from tests.patience import PATIENCE, eventually
from tests.xla_flags import QUICKLY_COMPILED

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "the token of this Revision"
_SIDECAR = """
import asyncio, dataclasses, json, os
from rightpool_profiler.sidecar import Settings, run
from rightpool_profiler.traces import requested
vars(requested).update(json.loads(os.environ["ALTERED"]))
asyncio.run(run(dataclasses.replace(Settings.read(os.environ), port=int(os.environ["PORT"]))))
"""
_SOURCES: Final = os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar")))
_HURRY: Final = {
    "reporter.py": {"PERIOD = 1.0": "PERIOD = 0.1", "_LAST_WORD = 10.0": "_LAST_WORD = 60.0"},
    "checkpoint.py": {"_WALK_EVERY = 2.0": "_WALK_EVERY = 0.3"},
}
# A trace that is asked for holds all its steps, however slow the machine.
ALL_STEPS: Final = {"_ENOUGH = 0.06": f"_ENOUGH = {PATIENCE}"}
_EAGER: Final = {"_WARM_UP_SECONDS = 5.0": "_WARM_UP_SECONDS = 0.0", "_EVERY = 120.0": "_EVERY = 0.0"}

Page = dict[str, float]  # `name{labels}` → value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment(**more: str) -> dict[str, str]:
    """This process' environment without anything of Python's or of the product's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RIGHTPOOL", "JAX_", "XLA_", "PYTEST"))}
    return {**kept, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": QUICKLY_COMPILED, "OMP_NUM_THREADS": "1", **more}


@dataclass
class Pod:
    shared: Path
    port: int = 0
    chips: int = 1
    mode: str = "Signal"
    sidecar: subprocess.Popen[bytes] | None = None
    programs: list[subprocess.Popen[str] | Forked] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    @property
    def agent(self) -> Path:
        return self.shared / "agent" / "rightpool_agent"

    def alter(self, module: str, changes: Mapping[str, str]) -> None:
        """Change the source of the installed agent."""
        text = (self.agent / module).read_text()
        for before, after in changes.items():
            assert text.count(before) == 1, f"{module}: {before}"
            text = text.replace(before, after)
        (self.agent / module).write_text(text)

    def trace_all_the_time(self) -> None:
        self.alter("trace_schedule.py", _EAGER)

    @property
    def kept(self) -> Path:
        """The sidecar's own volume."""
        return self.shared / "kept"

    def sidecar_environment(self) -> dict[str, str]:
        return clean_environment(
            PYTHONPATH=_SOURCES,
            **{
                contract.ENV_SHARED_DIR: str(self.shared),
                contract.ENV_KEPT_DIR: str(self.kept),
                contract.ENV_TOKEN_SHA256: hashlib.sha256(TOKEN.encode()).hexdigest(),
                contract.ENV_CHECKPOINT_MODE: self.mode,
                contract.ENV_CHECKPOINT_SIGNAL: "SIGUSR1",
                contract.ENV_CHIPS: str(self.chips),
                contract.ENV_INTERVAL: str(PATIENCE),
            },
        )

    def start_sidecar(self, altered: Mapping[str, float] | None = None) -> None:
        """altered: constants of the traces that are asked for."""
        self.kept.mkdir(exist_ok=True)
        for _ in range(5):  # another process may take the port before the sidecar
            self.port = free_port()
            environment = {**self.sidecar_environment(), "PORT": str(self.port), "ALTERED": json.dumps(altered or {})}
            sidecar = subprocess.Popen([sys.executable, "-c", _SIDECAR], env=environment, cwd="/")
            self.until(lambda sidecar=sidecar: sidecar.poll() is not None or self.get(contract.PATH_HEALTH) == "ok\n")
            if sidecar.poll() is None:
                self.sidecar = sidecar
                return
        pytest.fail("the sidecar does not start")

    def restart_sidecar(self, altered: Mapping[str, float] | None = None) -> None:
        assert self.sidecar is not None
        self.sidecar.kill()
        self.sidecar.wait(PATIENCE)
        self.start_sidecar(altered)

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
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self.programs.append(program)
        return program

    def get(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as answer:
                return str(answer.read().decode())
        except OSError:
            return None

    def post(
        self, body: object, token: str = TOKEN, path: str = contract.PATH_CHECKPOINT
    ) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}"},
        )

        def answered() -> tuple[int, dict[str, Any]] | None:
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.loads(error.read())
            except OSError:  # a sidecar that did not run for five seconds hangs up
                return None

        answer = eventually(answered, f"an answer to {body}")
        assert answer is not None
        return answer

    def metrics(self) -> Page:
        page = self.get(contract.PATH_METRICS) or ""
        rows = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def page(self, condition: Callable[[Page], object]) -> Page:
        """The first page of which it is true."""
        found: Page = {}

        def seen() -> object:
            nonlocal found
            found = self.metrics()
            return condition(found)

        self.until(seen)
        return found

    def caught_up(self) -> Page:
        """A page with all that the running program has done until now: the second report from here began after it."""
        taken = 'rightpool_profiler_datagrams_total{result="taken"}'
        before = self.page(lambda page: taken in page)[taken]
        return self.page(lambda page: page.get(taken, 0) >= before + 2)

    def until(self, condition: Callable[[], object]) -> None:
        eventually(condition, lambda: f"last page:\n{self.get(contract.PATH_METRICS)}")

    def stop(self) -> None:
        for program in self.programs:
            if program.poll() is None:
                program.kill()
            program.communicate(timeout=PATIENCE)
        for held in self.sockets:
            held.close()
        if self.sidecar is not None:
            self.sidecar.send_signal(signal.SIGTERM)
            self.sidecar.wait(PATIENCE)


@pytest.fixture(scope="session")
def installed() -> Iterator[Path]:
    """Run the init container's command."""
    shared = Path(tempfile.mkdtemp(prefix="rightpool-", dir="/tmp"))
    subprocess.run(
        [sys.executable, "-m", "rightpool_profiler", "install"],
        env=clean_environment(PYTHONPATH=_SOURCES, **{contract.ENV_SHARED_DIR: str(shared)}),
        check=True,
        cwd="/",
    )
    template = Pod(shared)
    for module, changes in _HURRY.items():
        template.alter(module, changes)
    # Else each program would compile what its test has not altered. What it alters within a second has another hash.
    compileall.compile_dir(template.agent, quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    yield shared
    shutil.rmtree(shared)


def _pods(installed: Path) -> Iterator[Callable[..., Pod]]:
    """Pods with an installed agent and no sidecar yet. Their directory must be short: it holds a socket."""
    pods: list[Pod] = []

    def make(**settings: object) -> Pod:
        shared = Path(tempfile.mkdtemp(prefix="rightpool-", dir="/tmp"))
        shutil.copytree(installed, shared, dirs_exist_ok=True)
        pods.append(Pod(shared, **settings))  # type: ignore[arg-type]
        return pods[-1]

    yield make
    for pod in pods:
        pod.stop()
        shutil.rmtree(pod.shared, ignore_errors=True)


@pytest.fixture
def make_pod(installed: Path) -> Iterator[Callable[..., Pod]]:
    yield from _pods(installed)


@pytest.fixture(scope="module")
def make_lasting_pod(installed: Path) -> Iterator[Callable[..., Pod]]:
    """For programs that several tests look at."""
    yield from _pods(installed)


@pytest.fixture(scope="session")
def torch_host(installed: Path) -> Iterator[ForkHost]:
    """For programs that only train. An optimizer's first step imports torch._dynamo."""
    for make in _pods(installed):
        pod = make()
        pod.alter("torch_trace.py", ALL_STEPS)
        host = ForkHost(pod.shared, pod.environment(), "torch", "torch._dynamo")
        yield host
        host.stop()


@pytest.fixture(scope="session")
def jax_host(installed: Path) -> Iterator[ForkHost]:
    """For programs that only train."""
    for make in _pods(installed):
        pod = make()
        host = ForkHost(pod.shared, pod.environment(), "jax")
        yield host
        host.stop()


@pytest.fixture(scope="session")
def bare_jax_host() -> Iterator[ForkHost]:
    """For programs with an agent that is altered, or with none."""
    with tempfile.TemporaryDirectory(prefix="rightpool-", dir="/tmp") as folder:
        host = ForkHost(Path(folder), clean_environment(), "jax")
        yield host
        host.stop()


@pytest.fixture
def pod(make_pod: Callable[..., Pod]) -> Pod:
    """One pod with its sidecar running."""
    made = make_pod()
    made.start_sidecar()
    return made
