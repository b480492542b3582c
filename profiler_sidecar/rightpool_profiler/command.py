"""Requests that are left for the agents, as files in a folder that the program may write to as well."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def leave(path: Path, request: Mapping[str, str | int | float]) -> None:
    """Put a request in the place of the one before, which agents read once a second. Raises OSError.

    Written is always a file of its own: what the program has put under the temporary name, such as a link to another
    file or a FIFO that nobody reads, is removed and never opened.
    """
    temporary = path.with_suffix(".tmp")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(json.dumps(request).encode())
    temporary.replace(path)
