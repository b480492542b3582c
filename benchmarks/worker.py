"""A process that is measured: processor time and memory as the kernel accounts them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory(pid: int) -> tuple[float, float]:
    """Resident memory in megabytes (2^20 bytes): current and peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    size = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if line.startswith("Vm")}
    return size["VmRSS"], size["VmHWM"]


class Worker:
    """A Python module in a process of its own."""

    def __init__(self, module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        self.began = time.time()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env={**os.environ, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process ID. Raises RuntimeError once the process has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(
                f"the process ended with exit status {self._process.returncode}:\n{self.log.read_text()[-2000:]}"
            )
        return self._process.pid

    def end(self) -> None:
        """Send SIGTERM, and SIGKILL after 25 seconds."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(25.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
