"""The sidecar's own volume: the traces of the newest request, one file a rank, beside what was answered of it.

Both outlive a restart of the sidecar, and are gone with the pod. The program's side may do anything to the file that it
leaves. So it is copied first, with bounds, and the copy is read. What XLA has written is turned into the format that
PyTorch's profiler writes, and is kept beside it as it is, where there is room, for xprof.
"""

import errno
import gzip
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from rightpool import contract
from rightpool_profiler.traces.answer import MESSAGES, Answer
from rightpool_profiler.traces.chrome import write
from rightpool_profiler.traces.kineto_summary import summarise
from rightpool_profiler.traces.summary import Summary
from rightpool_profiler.traces.xla_summary import Reading
from rightpool_profiler.traces.xspace import Event

MAX_BYTES: Final = 512 << 20  # of a trace as the agent writes it
MAX_KEPT_BYTES: Final = 48 << 20  # of the gzips of all ranks; beside them lie those of the request before
_MAX_XSPACE_BYTES: Final = 24 << 20  # of the gzip of XLA's own file, while it is turned into what is kept
ANSWER: Final = "newest.json"
_ENDING: Final = ".json.gz"
_XSPACE_ENDING: Final = ".xplane.pb.gz"
_COPY: Final = "copy.tmp"
_MADE: Final = "made.tmp"
_KINETO: Final = ".requested.json"
_XSPACE: Final = ".requested.xplane.pb"
_CHUNK: Final = 256 * 1024
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Unkept(Exception):
    """There is no trace to keep. `reason` is one of contract.TRACE_REASONS."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Kept:
    """The folder. `keep` blocks, and is for one thread at a time; all else is quick."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, identity: str, asked: int | None, rank: int) -> Path:
        """Of the trace of a rank. asked: the rank of the request, or None for all; ids are no names of files."""
        request = hashlib.sha256(f"{identity}:{contract.TRACE_ALL if asked is None else asked}".encode()).hexdigest()
        return self._folder / f"{request[:16]}-{rank}{_ENDING}"

    def forget(self, identity: str, asked: int | None, rank: int) -> None:
        """Remove the trace of a rank."""
        path = self.path(identity, asked, rank)
        remove(path)
        remove(_xspace_beside(path))

    def keep(self, source: Path, target: Path, room: int, step: float | None = None) -> dict[str, Any]:
        """Copy a trace to `target`, compressed, and say what it holds. Raises Unkept; then nothing has changed.

        room: bytes that its gzip may have. XLA's own file is kept where there is room for both. The result is
        RankAnswer's. step: seconds of a usual step; None where they are not known.
        """
        temporary, made = self._folder / _COPY, self._folder / _MADE
        of_xla = source.name.endswith(_XSPACE)
        try:
            if of_xla:
                _copy(source, made, _MAX_XSPACE_BYTES, _MAX_XSPACE_BYTES)
                size, summary = _convert(made, temporary, room)
            else:
                size = _copy(source, temporary, room)
                with gzip.open(temporary) as copy:
                    summary = summarise(_chunks(copy))
            with temporary.open("rb") as written:
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            packed = temporary.stat().st_size
            if of_xla and packed + made.stat().st_size <= room:
                packed += made.stat().st_size
                made.replace(_xspace_beside(target))
            temporary.replace(target)
        except (ValueError, EOFError, zlib.error) as error:
            raise Unkept("Unreadable", f"the file is no trace that can be summarised: {error}"[:200]) from error
        except OSError as error:
            raise _unkept(error) from error
        finally:
            remove(temporary)
            remove(made)
        return {"summary": summary.at_usual_pace(step).to_dict(), "bytes": size, "packed": packed, "sha256": digest}

    def load(self) -> Answer | None:
        """What was answered before this process was restarted."""
        try:
            return Answer.from_dict(json.loads((self._folder / ANSWER).read_bytes()))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def store(self, answer: Answer) -> None:
        """Keep what was answered, and the files that belong to it alone. Raises Unkept; then nothing has changed."""
        path = self._folder / ANSWER
        temporary = path.with_suffix(".new")
        try:
            temporary.write_bytes(json.dumps(answer.to_dict()).encode())
            temporary.replace(path)
        except OSError as error:
            remove(temporary)
            raise _unkept(error) from error
        try:
            wanted = {self.path(answer.id, answer.rank, one.rank) for one in answer.ranks if one.captured}
            wanted |= {_xspace_beside(path) for path in wanted}
            for other in self._folder.iterdir():
                if other.name.endswith((_ENDING, _XSPACE_ENDING)) and other not in wanted:
                    remove(other)
        except OSError:
            pass  # they go with the next request

    def send(self, identity: str, out: BinaryIO, *, of_xla: bool = False) -> int:
        """Write the traces of this request to `out`: for each rank a line of JSON with `rank`, `size`, `sha256`, and
        how many are `left` after it, then its gzip. The exit status of `python3 -m rightpool_profiler trace ID`; an
        error is a line with a message. of_xla: what XLA has written, instead of what was made of it."""
        answer = self.load()
        try:
            if answer is None or answer.id != identity or answer.state != contract.TRACE_CAPTURED:
                newest = "none" if answer is None else answer.id
                raise FileNotFoundError(f"this trace is not kept any more: the newest one is {newest}")
            captured = {one.rank: self.path(identity, answer.rank, one.rank) for one in answer.ranks if one.captured}
            if of_xla:
                captured = {rank: _xspace_beside(path) for rank, path in captured.items()}
                captured = {rank: path for rank, path in captured.items() if path.exists()}
                if not captured:
                    raise FileNotFoundError("nothing that XLA has written is kept of this trace")
            for left, rank in zip(range(len(captured) - 1, -1, -1), sorted(captured), strict=True):
                with captured[rank].open("rb") as file:
                    size, digest = os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()
                    head = {"rank": rank, "size": size, "sha256": digest, "left": left}
                    file.seek(0)
                    out.write(json.dumps(head).encode() + b"\n")
                    for chunk in _chunks(file):
                        out.write(chunk)
            out.flush()
            return 0
        except OSError as error:
            out.write(json.dumps({"message": str(error)}).encode() + b"\n")
            out.flush()
            return 1


def _xspace_beside(path: Path) -> Path:
    """Where XLA's own file lies, of which this one was made."""
    return path.with_name(path.name.removesuffix(_ENDING) + _XSPACE_ENDING)


def _unkept(error: OSError) -> Unkept:
    if error.errno in _FULL:
        return Unkept("NoSpace", MESSAGES["NoSpace"])
    return Unkept("CaptureFailed", f"the trace can't be kept: {error.strerror or error}"[:200])


def _copy(source: Path, target: Path, room: int, most: int = MAX_KEPT_BYTES) -> int:
    """Bytes of the trace. most: what the gzip of one trace alone may have."""
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    size = 0
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unkept("CaptureFailed", "what lies where the trace should be is no file")
        with target.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                packed.write(chunk)
                if size > MAX_BYTES or raw.tell() > room:
                    break
        # What the compressor held back comes with its end.
        if size > MAX_BYTES or target.stat().st_size > room:
            raise _too_large(room, most)
    return size


def _convert(source: Path, target: Path, room: int) -> tuple[int, Summary]:
    """Turn the gzip of XLA's file into that of a Chrome trace. Its bytes before compression, and what it says."""

    def chunks() -> Iterator[bytes]:
        with gzip.open(source) as file:
            yield from _chunks(file)

    reading = Reading()
    with target.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:

        def add(plane: int, plane_name: str, line: int, line_name: str, event: Event) -> None:
            if raw.tell() > room:
                raise _too_large(room)
            reading.add(plane, plane_name, line, line_name, event)

        size = write(chunks, packed, add)
    if target.stat().st_size > room:
        raise _too_large(room)
    return size, reading.summary()


def _too_large(room: int, most: int = MAX_KEPT_BYTES) -> Unkept:
    limit = f"{MAX_BYTES >> 20} MiB, or {most >> 20} MiB compressed"
    others = "" if room >= most else " together with those of the pod's other ranks"
    return Unkept("TooLarge", f"the trace is larger than {limit}{others}")


def _chunks(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def written(folder: Path, pid: int) -> Path:
    """What the agent of this process has left: XLA's file where there is one, else that of PyTorch's profiler."""
    xspace = folder / f"{pid}{_XSPACE}"
    return xspace if os.path.lexists(xspace) else folder / f"{pid}{_KINETO}"


def remove(path: Path) -> None:
    """Remove a file, if it is there and can be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass
