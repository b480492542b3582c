"""One at a time, between processes: the kernel lets go of a lock when its holder dies."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def held(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for the lock and hold it; `shared`: together with others who share it, and not with who does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
