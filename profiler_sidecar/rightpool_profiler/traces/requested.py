"""Traces that a user asks for: from the operator's POST to a file that is kept for the user.

The agent gets the request as a file; its reports say how far it is. A POST with the same id is the same request, so
that repeating it returns the current state. The newest trace is kept on a volume of the sidecar's own, beside what was
answered of it: both outlive a restart of this process, and are gone with the pod.

The program's side may do anything to the file that it leaves. So it is copied first, with bounds, and the copy is read.
"""

import errno
import gzip
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from rightpool import contract
from rightpool_profiler.command import leave
from rightpool_profiler.state import State
from rightpool_profiler.traces.summary import summarise

COMMAND: Final = "trace.json"
KEPT: Final = "newest.json.gz"
ANSWER: Final = "newest.json"
MAX_BYTES: Final = 256 << 20  # of a trace as the agent writes it
MAX_KEPT_BYTES: Final = 48 << 20  # of its gzip; beside it lies the one before, until the new one is complete
MAX_RANK: Final = 1_000_000
NO_AGENT_SECONDS: Final = 30.0  # until a process with this rank must have been heard of
START_SECONDS: Final = 180.0  # the same in a pod that has just started: importing a framework takes a while
LONGEST: Final = 240.0  # seconds until the agent must have written the trace
_CHUNK: Final = 256 * 1024
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Unkept(Exception):
    """There is no trace to keep. `reason` is one of contract.TRACE_REASONS."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request so far."""

    id: str
    rank: int
    state: str
    """One of contract.TRACE_STATES."""
    reason: str = ""
    message: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    """`summary`, `bytes` of the trace, `sha256` of its gzip; of one that was captured."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "rank": self.rank,
            "state": self.state,
            "reason": self.reason,
            "message": self.message,
            **self.result,
        }


_MESSAGES: Final = {
    "NoRank": "the processes of this pod have other ranks",
    "NoAgent": "the agent reports from no process of this pod",
    "NoSteps": "the program made no optimizer step in time",
    "StepTooLong": "a step takes longer than 20 s, so that its trace may not fit into the program's memory",
    "UnsupportedFramework": "only PyTorch programs on a CPU or an NVIDIA GPU can be traced",
    "UnsupportedVersion": "this PyTorch can't be traced: it needs 2.1 or newer, with CUDA 12.6 or newer on a GPU",
    "ProgramProfiles": "the program runs a profiler of its own, and there can be only one",
    "CaptureFailed": "PyTorch's profiler failed",
    "NoSpace": "there is no room for the trace on the pod's volume",
}


class Requested:
    """Holds the latest request. All but `read` is for one thread."""

    def __init__(self, shared: Path, kept: Path, started: float) -> None:
        """started: when this process began, by the clock of `now` in the other methods."""
        self._started = started
        self._command = shared / Path(contract.COMMAND_DIR).name / COMMAND
        self._traces = shared / Path(contract.TRACE_DIR).name
        self._kept = kept
        self._answer = _stored(kept / ANSWER)
        self._since = 0.0
        self._heard = False

    def ask(self, identity: str, rank: int, state: State, now: float, unix: float) -> Answer:
        """The state of the request, which is made if it is new."""
        known = self._answer
        if known is not None and (known.id, known.rank) == (identity, rank):
            return known
        ranks = state.ranks(now)
        if ranks and rank not in ranks and now >= self._started + START_SECONDS:
            return _failed(Answer(identity, rank, contract.TRACE_FAILED), "NoRank")
        self._since, self._heard = now, rank in ranks
        answer = Answer(identity, rank, "waiting")
        try:
            leave(self._command, {"id": identity, "rank": rank, "at": unix})
        except OSError as error:
            answer = _failed(answer, "NoSpace", f"the request can't be left for the agent: {error.strerror}")
        self._answer = answer
        return answer

    def look(self, state: State, now: float) -> tuple[Answer, Path] | None:
        """Follow the request. Where its trace has come: what `read` is to be called with, in a thread."""
        answer = self._answer
        if answer is None or answer.state in (contract.TRACE_CAPTURED, contract.TRACE_FAILED, "reading"):
            return None
        found, ranks = state.trace(answer.id, answer.rank, now), state.ranks(now)
        self._heard = self._heard or answer.rank in ranks
        if found is not None and found[1] == "written":
            self._answer = replace(answer, state="reading")
            return self._answer, self._traces / f"{found[0]}.requested.json"
        if found is not None and found[1] in _MESSAGES:
            self.settle(_failed(answer, found[1]))
        elif not self._heard and now > max(
            self._since + (0 if ranks else NO_AGENT_SECONDS), self._started + START_SECONDS
        ):
            self.settle(_failed(answer, "NoRank" if ranks else "NoAgent"))
        elif now - self._since > LONGEST:
            self.settle(_failed(answer, "NoSteps"))
        elif found is not None and found[1] == "capturing":
            self._answer = replace(answer, state="capturing")
        return None

    def read(self, answer: Answer, source: Path) -> Answer:
        """Keep the trace, and say what it holds. Blocks: run it in a thread."""
        try:
            result = keep(source, self._kept)
        except Unkept as error:
            return _failed(answer, error.reason, str(error))
        finally:
            _remove(source)
        return replace(answer, state=contract.TRACE_CAPTURED, result=result)

    def settle(self, answer: Answer) -> None:
        """This is what became of the request, unless another one came in between."""
        if self._answer is None or (self._answer.id, self._answer.rank) != (answer.id, answer.rank):
            return
        self._answer = answer
        _remove(self._command)
        try:
            _replace(self._kept / ANSWER, json.dumps(answer.to_dict()).encode())
        except OSError:
            pass  # a restart of this process forgets it, and the request is repeated then


def keep(source: Path, kept: Path) -> dict[str, Any]:
    """Copy a trace to the volume, compressed, and say what it holds. Raises Unkept; then the one before is still there.

    The result has `summary`, `bytes` of the trace, and `sha256` of the file that is kept.
    """
    target = kept / KEPT
    temporary = target.with_suffix(".tmp")
    try:
        size = _copy(source, temporary)
        with gzip.open(temporary) as copy:
            summary = summarise(_chunks(copy))
        with temporary.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        temporary.replace(target)
    except (ValueError, EOFError, zlib.error) as error:
        raise Unkept("Unreadable", f"the file is no trace that can be summarised: {error}"[:200]) from error
    except OSError as error:
        if error.errno in _FULL:
            raise Unkept("NoSpace", _MESSAGES["NoSpace"]) from error
        raise Unkept("CaptureFailed", f"the trace can't be kept: {error.strerror or error}"[:200]) from error
    finally:
        _remove(temporary)
    return {"summary": summary.to_dict(), "bytes": size, "sha256": digest}


def _copy(source: Path, target: Path) -> int:
    """Bytes of the trace."""
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    size = 0
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Unkept("CaptureFailed", "what lies where the trace should be is no file")
        with target.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                packed.write(chunk)
                if size > MAX_BYTES or raw.tell() > MAX_KEPT_BYTES:
                    limit = f"{MAX_BYTES >> 20} MiB, or {MAX_KEPT_BYTES >> 20} MiB compressed"
                    raise Unkept("TooLarge", f"the trace is larger than {limit}")
    return size


def _chunks(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _failed(answer: Answer, reason: str, message: str = "") -> Answer:
    return replace(answer, state=contract.TRACE_FAILED, reason=reason, message=message or _MESSAGES[reason])


def _stored(path: Path) -> Answer | None:
    """What was answered before this process was restarted."""
    try:
        body = json.loads(path.read_bytes())
        result = {name: body[name] for name in ("summary", "bytes", "sha256") if name in body}
        return Answer(body["id"], body["rank"], body["state"], body["reason"], body["message"], result)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_bytes(content)
    temporary.replace(path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass


def send(identity: str, kept: Path, out: BinaryIO) -> int:
    """Write the kept trace with this id to `out`: a line of JSON with its size and digest, then its gzip. The exit
    status of `python3 -m rightpool_profiler trace ID`; an error is a line with a message."""
    answer = _stored(kept / ANSWER)
    try:
        if answer is None or answer.id != identity or answer.state != contract.TRACE_CAPTURED:
            newest = "none" if answer is None else answer.id
            raise FileNotFoundError(f"this trace is not kept any more: the newest one is {newest}")
        with (kept / KEPT).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            out.write(json.dumps({"size": size, "sha256": answer.result["sha256"]}).encode() + b"\n")
            for chunk in _chunks(file):
                out.write(chunk)
        out.flush()
        return 0
    except (OSError, KeyError) as error:
        out.write(json.dumps({"message": str(error)}).encode() + b"\n")
        out.flush()
        return 1
