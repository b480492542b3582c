"""The files of a trace, which the sidecars of the pods keep: read from their containers by exec, as the user.

A file is complete, or not there. What a pod sends is compared with the digest in the job's status, which the operator
has of the sidecar: of one rank its file's, of all ranks one over all files.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from rightpool.api.trace import MAX_RANK, Trace
from rightpool.api.value_object import value_object
from rightpool.cli.connection import CliError
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound
from rightpool.cluster.resources import PODS
from rightpool.contract import LABEL_JOB, LABEL_REVISION, SIDECAR_CONTAINER
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.moves.trace_ranks import digest_of_all

SILENCE_SECONDS: Final = 120.0  # the command has to start first, which takes long where a node is busy
MAX_FILE_BYTES: Final = 64 << 20  # of a pod, compressed; the sidecar keeps less
_LONGEST_HEAD: Final = 4096
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def check_output(path: Path, every: bool) -> None:
    """Whether the files can be written, before a trace is taken for nothing. every: `path` is a folder, for those of
    all ranks, and is made where it is not there. Raises CliError."""
    if not every:
        if path.is_dir() or not _writable(path.parent):
            raise CliError(f"{path} can't be written: name a file in a folder that exists and that you may write to")
    elif not (_writable(path) if path.exists() else _writable(path.parent)):
        raise CliError(
            f"{path} can't be written: for all ranks, name a folder that you may write to, or a new folder in one"
        )


def _writable(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK)


def fetch(client: ClusterClient, key: JobKey, trace: Trace, path: Path) -> None:
    """Write the file of a trace of one rank; unpacked unless `path` ends in .gz. Raises CliError."""
    if trace.pod is None or trace.sha256 is None:
        raise CliError(f"no pod keeps trace {trace.id}")
    with _in_words(path, key, trace.pod), _replacing(path) as out, tempfile.TemporaryFile() as packed:
        stream = _asked(client, key, trace.pod, trace.id)
        head = _read_head(stream, trace.pod)
        _read_body(stream, head.size, trace.sha256, packed)
        if not stream.ended():
            raise CliError(f"the file came incomplete or changed (more than {head.size} bytes): try again")
        packed.seek(0)
        if path.suffix == ".gz":
            _copy(packed, out)
        else:
            with gzip.open(packed) as plain:
                _copy(plain, out)


def fetch_all(client: ClusterClient, key: JobKey, trace: Trace, folder: Path) -> tuple[list[Path], list[str]]:
    """Write a file for each rank into a folder, compressed. The files, and why others are not there. Raises CliError.

    The names are those by which TensorBoard tells the ranks of a run apart.
    """
    if trace.ranks is None or trace.sha256 is None:
        raise CliError(f"no pod keeps trace {trace.id}")
    pods = _pods(client, key, trace)
    with _filling(folder) as collected:
        digests, problems = _collected(client, key, trace.id, pods, collected)
        if len(digests) >= trace.ranks.captured:
            if digest_of_all(digests.items()) != trace.sha256:
                raise CliError("the files are not those of the job's status: take another trace")
            problems = []  # of pods without a trace, of which the status tells
        else:
            problems = problems or ["their pods are gone, and the files with them"]
            if not digests:
                raise CliError(f"no file of trace {trace.id} can be read: {'; '.join(problems)}")
        mode = 0o666 & ~_mask()
        written = []
        for rank in sorted(digests):
            (collected / _name(rank)).chmod(mode)
            written.append((collected / _name(rank)).replace(folder / _name(rank)))
        return written, problems


def fetch_xspaces(client: ClusterClient, key: JobKey, trace: Trace, folder: Path) -> list[Path]:
    """Write what XLA's profiler has recorded of each rank into a folder, where xprof and TensorBoard look for it.

    Raises CliError where there is nothing of XLA. What comes is compared with what the pod says of it alone: the
    digests in the status are of the other files.
    """
    pods = _pods(client, key, trace) if trace.ranks is not None else [] if trace.pod is None else [trace.pod]
    run = folder / "plugins" / "profile" / trace.id
    with _filling(folder) as collected:
        digests, problems = _collected(client, key, trace.id, pods, collected, "xspace")
        if not digests:
            raise CliError(
                f"trace {trace.id} has no file of XLA that can be read: {'; '.join(problems) or 'no pod runs'}"
            )
        run.mkdir(parents=True, exist_ok=True)
        paths = {rank: run / f"rank-{rank}.xplane.pb" for rank in sorted(digests)}
        for rank, path in paths.items():
            with _replacing(path) as out, gzip.open(collected / _name(rank)) as plain:
                _copy(plain, out)
        return list(paths.values())


@contextmanager
def _filling(folder: Path) -> Iterator[Path]:
    """Where files are collected that go into a folder, which is made where it is not there. It stays if it gets any."""
    made = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".trace.") as name:
            yield Path(name)
    except (OSError, EOFError) as error:
        raise CliError(f"{folder} can't be written: {error}") from error
    finally:
        if made and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def _name(rank: int) -> str:
    return f"rank-{rank}.pt.trace.json.gz"


def _pods(client: ClusterClient, key: JobKey, trace: Trace) -> list[str]:
    """Pods of the traced Revision that run."""
    labels = f"{LABEL_JOB}={key.name},{LABEL_REVISION}={trace.revision}"
    try:
        bodies = client.list_all(PODS, key.namespace, labels=labels)
    except Forbidden as error:
        message = f"the files can't be read: you may not list pods of namespace {key.namespace} (list pods)"
        raise CliError(message) from error
    running = (body for body in bodies if (body.get("status") or {}).get("phase") == "Running")
    return sorted(body["metadata"]["name"] for body in running)


def _collected(
    client: ClusterClient, key: JobKey, identity: str, pods: list[str], folder: Path, *which: str
) -> tuple[dict[int, str], list[str]]:
    """Digests by rank of the files that these pods have sent into the folder, and why others did not come."""
    digests: dict[int, str] = {}
    problems: list[str] = []
    for pod in pods:
        try:
            with _in_words(folder, key, pod):
                stream, room, left = _asked(client, key, pod, identity, *which), MAX_FILE_BYTES, True
                while left:
                    head = _read_head(stream, pod)
                    room, left = room - head.size, head.left > 0
                    if head.rank in digests or room < 0:
                        raise CliError(f"pod {pod} sent rank {head.rank} twice, or more data than allowed")
                    with (folder / _name(head.rank)).open("wb") as packed:
                        _read_body(stream, head.size, head.sha256, packed)
                    digests[head.rank] = head.sha256
        except CliError as error:
            problems.append(str(error))
    return digests, problems


@contextmanager
def _in_words(path: Path, key: JobKey, pod: str) -> Iterator[None]:
    """Turns what goes wrong with a pod's files into a sentence."""
    try:
        yield
    except Forbidden as error:
        raise CliError(
            f"the file can't be read: you may not run commands in pods of namespace {key.namespace} "
            "(create and get pods/exec)"
        ) from error
    except NotFound as error:
        raise CliError(f"pod {pod} is gone, and the file with it: take another trace") from error
    except ClusterError as error:
        raise CliError(f"the file can't be read from pod {pod}: {error.message}") from error
    except (OSError, EOFError) as error:
        raise CliError(f"{path} can't be written: {error}") from error


# --- what a pod sends --------------------------------------------------------------------------------------------


class _Stream:
    """Bytes that come in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def line(self) -> bytes:
        """Up to the next line break, or what there is where it does not come."""
        while b"\n" not in self._held and len(self._held) <= _LONGEST_HEAD and self._more():
            pass
        line, _, self._held = self._held.partition(b"\n")
        return line

    def read(self, size: int) -> Iterator[bytes]:
        """So many bytes, or fewer at the end."""
        while size and (self._held or self._more()):
            piece, self._held = self._held[:size], self._held[size:]
            size -= len(piece)
            yield piece

    def ended(self) -> bool:
        while not self._held and self._more():
            pass
        return not self._held

    def _more(self) -> bool:
        piece = next(self._pieces, None)
        self._held += piece or b""
        return piece is not None


@value_object
class _Head:
    """What a pod says before the file of a rank."""

    rank: int
    size: int
    sha256: str
    left: int
    """Files that come after it."""


def _asked(client: ClusterClient, key: JobKey, pod: str, identity: str, *which: str) -> _Stream:
    command = ("python3", "-m", "rightpool_profiler", "trace", identity, *which)
    pieces = client.container_output(key.namespace, pod, SIDECAR_CONTAINER, command, silence=SILENCE_SECONDS)
    return _Stream(iter(pieces))


def _read_head(stream: _Stream, pod: str) -> _Head:
    line = stream.line()
    try:
        about = json.loads(line)
        message = about.get("message", "no size")
    except (ValueError, AttributeError, RecursionError) as error:
        raise CliError(f"pod {pod} sent no trace: {line[:200].decode('utf-8', 'replace')!r}") from error
    rank, size, left = (_whole(about, name) for name in ("rank", "size", "left"))
    digest = about.get("sha256")
    if (
        not 0 <= rank <= MAX_RANK
        or not 0 < size <= MAX_FILE_BYTES
        or left < 0
        or not (isinstance(digest, str) and _DIGEST.fullmatch(digest))
    ):
        plain = "".join(letter for letter in str(message)[:300] if letter.isprintable())
        raise CliError(f"the file can't be read from pod {pod}: {plain}")
    return _Head(rank, size, digest, left)


def _whole(about: dict[str, Any], name: str) -> int:
    """The number; -1 where it is none."""
    value = about.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _read_body(stream: _Stream, size: int, expected: str, packed: IO[bytes]) -> None:
    digest, received = hashlib.sha256(), 0
    for piece in stream.read(size):
        received += len(piece)
        digest.update(piece)
        packed.write(piece)
    if received != size or digest.hexdigest() != expected:
        raise CliError(f"the file came incomplete or changed ({received} of {size} bytes): try again")


# --- writing -----------------------------------------------------------------------------------------------------


def _copy(source: IO[bytes] | gzip.GzipFile, target: IO[bytes]) -> None:
    while chunk := source.read(1 << 20):
        target.write(chunk)


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when it is complete."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        Path(name).chmod(0o666 & ~_mask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
