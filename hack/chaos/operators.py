"""The operators under test: processes that a campaign starts, stops, kills and lets die."""

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

ROOT: Final = Path(__file__).resolve().parents[2]
START_SECONDS: Final = 120.0
LEASE_SECONDS: Final = 4.0


@dataclass(slots=True)
class Replica:
    """One process of an operator. exit_code: negative where a signal ended it; None while it runs."""

    identity: str
    pid: int
    log: Path
    die: str | None
    frozen: bool = False
    exit_code: int | None = None
    since: float = field(default_factory=time.monotonic)  # when it was started, or went on

    @property
    def alive(self) -> bool:
        """Whether it has not ended. A stopped one is alive."""
        return self.exit_code is None

    @property
    def able(self) -> bool:
        """Whether it can do something."""
        return self.alive and not self.frozen

    def signal(self, number: int) -> None:
        """To this process and no other: it is not reaped, and its pid not given anew, before its end was told."""
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


class Nursery:
    """A process that forks operators, seen from outside."""

    def __init__(self, kubeconfig: Path, folder: Path, **environment: str) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        key = folder / "key"
        key.write_text("0123456789abcdef0123456789abcdef")
        self._environment = {
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
            **environment,
        }
        path = os.pathsep.join(str(ROOT / part) for part in ("operator", "profiler_sidecar", "hack"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chaos.nursery"],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._replicas: dict[int, Replica] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, name="nursery", daemon=True).start()

    def start(self, identity: str, *, die: str | None = None, environment: Mapping[str, str] | None = None) -> Replica:
        """A new operator. die: as in `chaos.nursery`."""
        log = self._folder / f"{identity}.log"
        order = {
            "identity": identity,
            "log": str(log),
            "environment": {**self._environment, **(environment or {})},
            "die": die,
        }
        with self._lock:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._answers.get(timeout=START_SECONDS)
            replica = Replica(identity, answer["pid"], log, die)
            self._replicas[replica.pid] = replica
            return replica

    def wait(self, replica: Replica, seconds: float) -> bool:
        """Whether it ended within that time."""
        deadline = time.monotonic() + seconds
        while replica.alive and time.monotonic() < deadline:
            time.sleep(0.02)
        return not replica.alive

    def close(self) -> None:
        """End all of them."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if "ended" not in answer:
                self._answers.put(answer)
                continue
            # One that dies at once may be told of before its starter has taken note of it.
            deadline = time.monotonic() + 30
            while answer["pid"] not in self._replicas and time.monotonic() < deadline:
                time.sleep(0.005)
            replica = self._replicas.pop(answer["pid"], None)
            if replica is not None:
                replica.exit_code = answer["ended"]
