"""Locks work between processes, and are released when the holder ends."""

import subprocess
import sys
import threading
from pathlib import Path

from devcluster import locks
from tests.patience import PATIENCE

HOLD = """
import sys
from pathlib import Path
from devcluster import locks
with locks.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_holder_waits_for_the_first(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        got = threading.Event()

        def wait() -> None:
            with locks.held(path):
                got.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not got.wait(0.3)
        holder.kill()  # it could not release the lock itself
        assert got.wait(PATIENCE)
        waiter.join()


def test_shared_holders_exclude_others(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    got = threading.Event()

    def wait() -> None:
        with locks.held(path):
            got.set()

    with locks.held(path, shared=True), locks.held(path, shared=True):
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not got.wait(0.3)
    assert got.wait(PATIENCE)
    waiter.join()
