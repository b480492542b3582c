"""The socket that receives the agents' datagrams."""

import asyncio
import contextlib
import socket
import time
from pathlib import Path
from typing import Final

from rightpool_profiler import report
from rightpool_profiler.state import State

_BURST: Final = 64  # datagrams read before other tasks run
_PER_SECOND: Final = 1000  # datagrams parsed per second; agents of 256 processes send 256


class Receiver:
    """Reads datagrams into the state. Malformed ones are counted and dropped."""

    def __init__(self, path: Path, state: State) -> None:
        self._path = path
        self._state = state
        self._socket: socket.socket | None = None
        self._second = 0
        self._parsed = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Bind the socket; any user of the pod may write to it. What the program has put in its place is moved away."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError:  # a directory, which may hold anything
            self._path.rename(self._path.with_name(f".{self._path.name}-{time.time_ns()}"))
        self._socket = bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        bound.bind(str(self._path))
        self._path.chmod(0o666)
        loop.add_reader(bound, self._read)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._socket is not None:
            loop.remove_reader(self._socket)
            self._socket.close()
            with contextlib.suppress(OSError):
                self._path.unlink()

    def _read(self) -> None:
        assert self._socket is not None
        for _ in range(_BURST):
            try:
                data = self._socket.recv(report.MAX_BYTES + 1)
            except BlockingIOError:
                return
            except OSError:
                continue
            self.take(data, time.monotonic(), time.time())

    def take(self, data: bytes, now: float, unix: float) -> None:
        """Parse one datagram into the state."""
        if int(now) != self._second:
            self._second, self._parsed = int(now), 0
        self._parsed += 1
        try:
            if self._parsed > _PER_SECOND:
                raise report.Malformed("too many datagrams")
            self._state.apply(report.parse(data), now, unix)
            self._state.taken += 1
        except report.Malformed:
            self._state.refused += 1
