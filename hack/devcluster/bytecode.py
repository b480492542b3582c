"""Byte code for images. Containers write none, so that each start of Python would compile all that it imports again.

It holds the hash of its source in place of the time, and is used without a look at the source (PEP 552).
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

IMAGE_PYTHON: Final = "cpython-311"
# Of the official client, 47 MB of byte code that no program here imports.
UNCOMPILED: Final = "kubernetes/(aio/)?client/(api|models)/"
HASHED: Final = (1).to_bytes(4, "little")
"""The flags, in bytes 4 to 8 of the file."""


def add(folder: Path, target: str) -> None:
    """Compile all modules of a folder that will be `target` in an image. Another Python's byte code could not be read
    there, and none is made by it."""
    if sys.implementation.cache_tag != IMAGE_PYTHON:
        return
    command = [sys.executable, "-m", "compileall", "-qq", "-f", "--invalidation-mode=unchecked-hash"]
    # What does not compile is no module, such as a template.
    subprocess.run([*command, "-x", UNCOMPILED, "-s", str(folder), "-p", target, str(folder)])


def of(sources: dict[str, Path], target: str) -> dict[str, bytes]:
    """The byte code of these modules, by path below `target` as they are."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, source in sources.items():
            copy = Path(scratch) / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
        add(Path(scratch), target)
        return {path.relative_to(scratch).as_posix(): path.read_bytes() for path in Path(scratch).rglob("*.pyc")}


def lasting(path: Path) -> bool:
    """Whether this file of byte code contains no time of its source."""
    with path.open("rb") as opened:
        return opened.read(8)[4:] == HASHED


def timeless(code: bytes) -> bytes:
    """Byte code whose source has the time zero, as all files of an image have."""
    return code if code[4:8] == HASHED else code[:8] + bytes(4) + code[12:]
