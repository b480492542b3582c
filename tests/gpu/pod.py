"""A pod without Kubernetes for programs on this machine's GPUs: the installed agent, a sidecar, and its page."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rightpool import contract

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef"
PATIENCE = 120.0  # seconds; on an idle machine it takes less than one
_SOURCES = os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar")))
_SIDECAR = """
import asyncio, dataclasses, os
from rightpool_profiler.sidecar import Settings, run
asyncio.run(run(dataclasses.replace(Settings.read(os.environ), port=int(os.environ["PORT"]))))
"""

# Behind the agent's copy of pynvml: a container is given its own chips alone, and all of a machine are seen here.
_SEEN = """
import os as _os
_seen = [int(_one) for _one in _os.environ["CUDA_VISIBLE_DEVICES"].split(",")]
_of_machine = nvmlDeviceGetHandleByIndex
def nvmlDeviceGetCount(): return len(_seen)
def nvmlDeviceGetHandleByIndex(index): return _of_machine(_seen[index])
"""

Page = dict[str, float]  # `name{labels}` → value


def bare_environment() -> dict[str, str]:
    """This process' environment without variables of the product and without PYTHONPATH."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RIGHTPOOL_")}
    kept.pop("PYTHONPATH", None)
    return kept


class Pod:
    """Holds a shared directory with the agent, and a sidecar that runs until the end of the `with` block.

    gpus: those of the machine that it has; None: all. interval: seconds that the sidecar averages over.
    """

    def __init__(
        self, chips: int = 1, shared: Path | None = None, *, gpus: Sequence[int] | None = None, interval: int = 10
    ) -> None:
        # A short path, because it has a socket.
        self.shared = shared or Path(tempfile.mkdtemp(prefix="rightpool-", dir="/tmp"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        ours = {
            **bare_environment(),
            "PYTHONPATH": _SOURCES,
            "PORT": str(self.port),
            contract.ENV_SHARED_DIR: str(self.shared),
            contract.ENV_CHIPS: str(chips),
            contract.ENV_INTERVAL: str(interval),
            contract.ENV_KEPT_DIR: str(self.kept),
            contract.ENV_TOKEN_SHA256: hashlib.sha256(TOKEN.encode()).hexdigest(),
        }
        self.kept.mkdir(exist_ok=True)
        subprocess.run([sys.executable, "-m", "rightpool_profiler", "install"], env=ours, check=True)
        self._own: dict[str, str] = {}
        if gpus is not None:
            self._own = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
        nvml = self.shared / "agent" / "rightpool_agent" / "pynvml.py"
        if not nvml.exists():
            print("no pynvml (nvidia-ml-py) here: the chips' counters will be absent")
        elif gpus is not None:
            with nvml.open("a") as module:
                module.write(_SEEN)
        self.sidecar = subprocess.Popen([sys.executable, "-c", _SIDECAR], env=ours)

    def __enter__(self) -> Self:
        deadline = time.monotonic() + PATIENCE
        while not (self.shared / Path(contract.AGENT_SOCKET).name).exists():
            assert self.sidecar.poll() is None and time.monotonic() < deadline, "the sidecar does not start"
            time.sleep(0.05)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.sidecar.kill()
        self.sidecar.wait()
        shutil.rmtree(self.shared, ignore_errors=True)

    def environment(self, **more: str) -> dict[str, str]:
        """The variables that the operator sets in the program's container."""
        return {
            **bare_environment(),
            "PYTHONPATH": str(self.shared / "agent"),
            contract.ENV_SHARED_DIR: str(self.shared),
            contract.ENV_TRACE: "Auto",
            **self._own,
            **more,
        }

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Run the program with the agent in it."""
        return subprocess.Popen(
            [sys.executable, *command],
            env=self.environment(**environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def kept(self) -> Path:
        """The sidecar's own volume."""
        return self.shared / "kept"

    def ask_trace(self, identity: str, rank: int | str = 0) -> dict[str, Any]:
        """The sidecar's answer to a request for a trace of a rank, asked again until it is over. Of one rank it has
        what the answer says of it; of `all`, `ranks` have that."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{contract.PATH_TRACE}",
            data=json.dumps({"id": identity, "rank": rank}).encode(),
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            with urllib.request.urlopen(request, timeout=60) as answer:
                found: dict[str, Any] = json.loads(answer.read())
            if found["state"] in (contract.TRACE_CAPTURED, contract.TRACE_FAILED):
                return found | next(iter(found["ranks"]), {})
            assert time.monotonic() < deadline, found
            time.sleep(0.2)

    def page(self) -> Page:
        """The present values of /metrics; empty without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{contract.PATH_METRICS}", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return {}
        rows = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}


def labelled(page: Page, metric: str) -> list[float]:
    """All values of a metric that has labels."""
    return [value for name, value in page.items() if name.startswith(metric + "{")]


class Checks:
    """Comparisons, printed at once."""

    def __init__(self) -> None:
        self.failed = 0

    def near(self, name: str, expected: float, found: float, tolerance: float) -> None:
        """`tolerance` is absolute, in the unit of both."""
        self.true(
            name, abs(found - expected) <= tolerance, f"expected {expected:.5g} ± {tolerance:.2g}, is {found:.5g}"
        )

    def true(self, name: str, agrees: bool, words: str) -> None:
        self.failed += not agrees
        print(f"{'ok ' if agrees else 'BAD'}  {name:34} {words}", flush=True)
