"""Locks between processes. The kernel releases a lock when its holder ends."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def held(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for the lock and hold it. shared: together with other shared holders, but not with an exclusive one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
