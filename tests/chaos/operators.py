"""The operators under test: processes that a campaign starts, stops, kills and makes crash."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.patience import PATIENCE

ROOT: Final = Path(__file__).resolve().parents[2]
LEASE_SECONDS: Final = 4.0


@dataclass(slots=True)
class Replica:
    """One process of an operator. exit_code: negative where a signal ended it; None while it runs."""

    identity: str
    pid: int
    log: Path
    crash: str | None
    frozen: bool = False
    exit_code: int | None = None
    since: float = field(default_factory=time.monotonic)  # when it was started or continued

    @property
    def alive(self) -> bool:
        """Whether the process exists, running or stopped."""
        return self.exit_code is None

    @property
    def can_act(self) -> bool:
        """Whether the process runs and is not stopped."""
        return self.alive and not self.frozen

    def signal(self, number: int) -> None:
        """Send a signal. The pid can't have been reused: the process is reaped only when its end is reported."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def freeze(self) -> None:
        self.frozen = True
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)
        self.frozen = False
        self.since = time.monotonic()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.frozen = False


class ProcessPool:
    """Starts operators through the fork server and tracks their ends."""

    def __init__(self, kubeconfig: Path, folder: Path, **variables: str) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        key = folder / "key"
        key.write_text("0123456789abcdef0123456789abcdef")
        self._variables = {
            "RIGHTPOOL_KUBECONFIG": str(kubeconfig),
            "RIGHTPOOL_LEASE_DURATION": str(LEASE_SECONDS),
            "RIGHTPOOL_INTERVAL": "0.5",
            "RIGHTPOOL_TOKEN_KEY_FILE": str(key),
            "RIGHTPOOL_BIND_ADDRESS": "127.0.0.1",
            "RIGHTPOOL_METRICS_PORT": "0",
            "RIGHTPOOL_LIVENESS_PORT": "0",
            "RIGHTPOOL_LOG_FORMAT": "text",
            "RIGHTPOOL_API_QPS": "300",
            "RIGHTPOOL_API_BURST": "300",
            "RIGHTPOOL_API_TIMEOUT": "5",
            **variables,
        }
        path = os.pathsep.join(str(ROOT / part) for part in ("operator", "profiler_sidecar", "hack", "."))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.fork_server"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._replicas: dict[int, Replica] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="process_pool", daemon=True).start()

    def start(self, identity: str, *, crash: str | None = None, variables: Mapping[str, str] | None = None) -> Replica:
        """Start an operator. crash: see `tests.chaos.fork_server`."""
        log = self._folder / f"{identity}.log"
        order = {
            "identity": identity,
            "log": str(log),
            "variables": {**self._variables, **(variables or {})},
            "crash": crash,
        }
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=PATIENCE)
            replica = Replica(identity, answer["pid"], log, crash)
            self._replicas[replica.pid] = replica
            return replica

    def wait(self, replica: Replica, seconds: float) -> bool:
        """Wait for an end; whether it ended within that time."""
        deadline = time.monotonic() + seconds
        while replica.alive and time.monotonic() < deadline:
            time.sleep(0.02)
        return not replica.alive

    def close(self) -> None:
        """Kill all operators."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if "ended" not in answer:
                self._answers.put(answer)
                continue
            # The end of one that crashes at once may be reported before `start` has recorded it.
            deadline = time.monotonic() + PATIENCE
            while answer["pid"] not in self._replicas and time.monotonic() < deadline:
                time.sleep(0.005)
            replica = self._replicas.pop(answer["pid"], None)
            if replica is not None:
                replica.exit_code = answer["ended"]
