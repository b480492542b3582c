"""Locks between processes. The kernel releases a lock when its holder ends."""

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def held(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for the lock and hold it. shared: together with other shared holders, but not with an exclusive one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def held_by_name(path: Path, waiting: Callable[[str], None]) -> Iterator[None]:
    """Wait for the lock and hold it. `waiting` is told who holds it, again when that is another one.

    A child that is started with `close_fds=False` holds it, too: it is free when all of them have ended.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    named = ""
    with path.open("a") as lock:  # it must not truncate the file, where the holder stands
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = path.read_text()
                if holder and holder != named:  # it is empty for a moment, before the holder writes it
                    waiting(holder)
                    named = holder
                time.sleep(0.2)
        lock.truncate(0)
        lock.write(f"process {os.getpid()} in {Path.cwd()}")
        lock.flush()
        os.set_inheritable(lock.fileno(), True)
        yield
