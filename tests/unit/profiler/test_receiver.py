"""The socket for the agents' datagrams, in a directory that the program can write to."""

from __future__ import annotations

import asyncio
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rightpool_profiler.receiver import Receiver
from rightpool_profiler.state import State


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # short enough for the name of a socket
        yield Path(folder) / "profiler.sock"


def _file(path: Path) -> None:
    path.write_text("x")


def _directory(path: Path) -> None:
    (path / "full").mkdir(parents=True)


def _link(path: Path) -> None:
    path.symlink_to("/etc")


@pytest.mark.parametrize("put", [lambda path: None, _file, _directory, _link])
def test_whatever_lies_where_the_socket_belongs(path: Path, put: Callable[[Path], object]) -> None:
    async def listen() -> None:
        loop = asyncio.get_running_loop()
        receiver = Receiver(path, State(1.0, chips=1))
        receiver.start(loop)
        assert stat.S_ISSOCK(path.lstat().st_mode) and path.stat().st_mode & 0o777 == 0o666
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"{}", str(path))
        path.unlink()
        _directory(path)
        receiver.stop(loop)

    put(path)
    asyncio.run(listen())
    assert Path("/etc/passwd").exists()
