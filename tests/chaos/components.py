"""The programs of a campaign's cluster. What a fault ends, and what ends by itself, is started again.

A controller manager that does not find the API server while it starts ends by itself; on a real machine the kubelet
starts it again. Without it nothing would collect the children of deleted jobs.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from devcluster.processes import Identity, Program, Supervisor
from devcluster.spec import DevclusterError
from tests.patience import PATIENCE

_PAUSE_SECONDS: Final = 0.5  # before another start of what ended before it was ready


class Components:
    """state: the cluster's directory. Threads start and wait; one other thread injects faults and calls all methods."""

    def __init__(self, state: Path, programs: Iterable[Program]) -> None:
        self._supervisor = Supervisor(state)
        self._programs = {program.name: program for program in programs}
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.broken: set[str] = set()
        """Names of those that are unavailable at the moment."""

    def process(self, name: str) -> Identity | None:
        """The running process of a component; None if there is none."""
        record = self._supervisor.record(name)
        return record.identity if record is not None and record.identity.alive() else None

    def kill(self, name: str, identity: Identity) -> None:
        """SIGKILL; it is started again at once."""
        self.broken.add(name)
        identity.signal(signal.SIGKILL)
        self._in_background(lambda: self._start(name, identity))

    def freeze(self, name: str, identity: Identity, seconds: float) -> None:
        """SIGSTOP for so long: connections are accepted and not answered."""
        self.broken.add(name)
        identity.signal(signal.SIGSTOP)

        def thaw() -> None:
            try:
                self._stopping.wait(seconds)
            finally:
                identity.signal(signal.SIGCONT)
                self.broken.discard(name)

        self._in_background(thaw)

    def start_ended(self) -> list[str]:
        """Start what has ended by itself. Returns its names."""
        ended = [name for name in self._programs if name not in self.broken and not self._supervisor.running(name)]
        for name in ended:
            self.broken.add(name)
            self._in_background(lambda name=name: self._start(name))  # type: ignore[misc]
        return ended

    def close(self) -> None:
        """Continue every process that is stopped, and start what was killed. What fails is not started once more."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _start(self, name: str, former: Identity | None = None) -> None:
        """Start it, and again if it ends before it is ready."""
        while former is not None and former.alive():
            time.sleep(0.05)
        program = self._programs[name]
        while True:
            try:
                self._supervisor.ensure(program)
                self._supervisor.wait(program, seconds=PATIENCE)
            except DevclusterError:
                if self._stopping.wait(_PAUSE_SECONDS):
                    return
                continue
            self.broken.discard(name)
            return

    def _in_background(self, action: Callable[[], None]) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._threads.append(threading.Thread(target=action, daemon=True))
        self._threads[-1].start()
