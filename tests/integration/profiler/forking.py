"""Programs that begin after the import of their framework, which is imported with the agent once for all of them.

Importing a framework takes more processor time than most programs here take after it. What a test says of the import,
of the start of a program or of its end needs `Pod.start`. An agent that the test has altered is begun by the program:
its host is bare.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from tests.integration.profiler.conftest import Pod

_HOST: Final = str(Path(__file__).with_name("fork_host.py"))


class Forked:
    """A running program, with what tests use of `subprocess.Popen`. Its output must fit in a pipe."""

    def __init__(self, host: socket.socket, source: str, environment: dict[str, str]) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe()
        theirs = [theirs_in, theirs_out, theirs_err]
        socket.send_fds(host, [json.dumps([source, environment]).encode()], theirs)
        for stream in theirs:
            os.close(stream)
        self.stdin: TextIO = os.fdopen(ours_in, "w")
        self.stdout: TextIO = os.fdopen(ours_out)
        self.stderr: TextIO = os.fdopen(ours_err)
        self.returncode: int | None = None
        self._host = host
        self.pid = int(host.recv(64))

    def poll(self) -> int | None:
        try:
            return self.wait(0.0)
        except BlockingIOError:
            return None

    def wait(self, timeout: float) -> int:
        """Seconds. Raises an OSError if it still runs."""
        if self.returncode is None:
            self._host.settimeout(timeout)
            self.returncode = int(self._host.recv(64))
            self._host.close()
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What is left of output and errors, when it has ended."""
        if not self.stdin.closed:
            self.stdin.close()
        self.wait(timeout)
        return self.stdout.read(), self.stderr.read()

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class ForkHost:
    """The process that has imported the modules. environment: its own, with an agent or without."""

    def __init__(self, folder: Path, environment: dict[str, str], *modules: str) -> None:
        self._path = str(folder / "host.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(self._path)
            listening.listen()
            self._process = subprocess.Popen(
                [sys.executable, _HOST, str(listening.fileno()), *modules],
                env=environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[listening.fileno()],
                cwd="/",
            )

    def start(self, pod: Pod, source: str, **environment: str) -> Forked:
        """Run a program in the pod, as `python -c` does."""
        forked = self.fork(source, pod.environment(**environment))
        pod.programs.append(forked)
        return forked

    def fork(self, source: str, environment: dict[str, str]) -> Forked:
        """The same in no pod."""
        host = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        host.connect(self._path)
        return Forked(host, source, environment)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
