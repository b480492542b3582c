"""`rightpool trace NAME`: have some steps of a job traced, print what their time went to, and write it to a file.

The request is the annotation rightpool.dev/trace, written as the user; the operator has the trace taken, and puts its
summary into the job's status. The file is read from the sidecar's container by exec, as the user too: who may run
commands in the job's pods may read what they do.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from rightpool.api.trace import MAX_RANK, Trace, TraceOperation, TraceState, TraceSummary
from rightpool.cli.approve import MERGE_CONTENT
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.job_names import job_key
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_TRACE, SIDECAR_CONTAINER
from rightpool.planning.job import JobKey
from rightpool.planning.trace import LONGEST_SECONDS, PAUSE_SECONDS
from rightpool.reporting.stored_job import StoredJob, read_job
from rightpool.reporting.wording import number, span

POLL_SECONDS: Final = 1.0
TAKEN_SECONDS: Final = PAUSE_SECONDS + 60.0
"""Until an operator that runs has taken the request."""

SILENCE_SECONDS: Final = 30.0
MAX_FILE_BYTES: Final = 64 << 20  # compressed; the sidecar keeps less
_LONGEST_HEAD: Final = 4096
_PARTS: Final = {
    "Compute": "computing",
    "OverlappedCommunication": "communicating while computing",
    "ExposedCommunication": "communicating alone",
    "Memcpy": "copying",
    "Input": "waiting for data",
    "Launch": "waiting for launches",
    "Idle": "idle for other reasons",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("name", help="of the ProfiledJob")
    parser.add_argument("--rank", type=_rank, default=0, help="of the process that is traced; default: 0")
    parser.add_argument("--summary", action="store_true", help="show the newest trace, and have none taken")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the trace; compressed if it is .gz")
    add_connection_arguments(parser, outputs=("table",))


def _rank(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_RANK:
        raise argparse.ArgumentTypeError(f"{text} is no rank: a whole number from 0 to {MAX_RANK}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 done, 1 there is no trace."""

    def work(connection: Connection) -> None:
        key = job_key(arguments.name, connection.namespace)
        if arguments.output is not None:
            _check_folder(arguments.output)
        stored = _job(connection.client, key)
        trace = stored.job.state.trace if arguments.summary else _taken(connection.client, stored, arguments.rank)
        if trace is None:
            raise CliError(f"no trace of {key} was taken so far: leave --summary out to have one taken")
        if trace.state is TraceState.FAILED:
            raise CliError(f"there is no trace ({trace.reason}): {trace.message}")
        if trace.state is not TraceState.CAPTURED or trace.summary is None:
            raise CliError(f"trace {trace.id} is still being taken: it is {trace.state.value}")
        show(trace, trace.summary, Page())
        if arguments.output is not None:
            fetch(connection.client, key, trace, arguments.output)
            print(f"\nwrote {arguments.output}: open it in Perfetto or chrome://tracing")

    return carry_out(arguments, "trace", work)


def _check_folder(path: Path) -> None:
    """Before a trace is taken for nothing."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise CliError(f"{path} can't be written: name a file in a folder that is there and yours")


def _job(client: ClusterClient, key: JobKey) -> StoredJob:
    try:
        return read_job(client.get(PROFILED_JOBS, key.name, key.namespace))
    except NotFound as error:
        raise CliError(f"there is no ProfiledJob {key.name} in namespace {key.namespace}") from error


# --- asking for it -----------------------------------------------------------------------------------------------


def _taken(client: ClusterClient, stored: StoredJob, rank: int) -> Trace:
    """Ask for a trace, and wait until it is taken, or has failed."""
    job = stored.job
    if job.state.finished is not None:
        raise CliError(f"{job.key} has {job.state.finished.lower()}: `--summary` shows the last trace of it")
    if not job.spec.managed:
        raise CliError(f"spec.managedBy of {job.key} names {job.spec.managed_by}, which takes no traces")
    identity = f"cli-{secrets.token_hex(4)}"
    value = f"{identity}:{rank}" if rank else identity
    body: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION_TRACE: value}}}
    client.request("PATCH", PROFILED_JOBS.path(job.key.namespace, job.key.name), body=body, content=MERGE_CONTENT)
    began = time.monotonic()
    with _progress() as say:
        while True:
            trace = _job(client, job.key).job.state.trace
            waited = time.monotonic() - began
            if trace is not None and (trace.id, trace.rank) == (identity, rank):
                if trace.over:
                    return trace
                say(_state(trace), waited)
            elif waited > TAKEN_SECONDS and (trace is None or trace.over):
                raise CliError(
                    f"no operator has taken the request within {span(TAKEN_SECONDS)}: is it running, and does it watch "
                    f"namespace {job.key.namespace}?"
                )
            else:
                say("asked the operator", waited)
            if waited > LONGEST_SECONDS + 2 * TAKEN_SECONDS:
                raise CliError(f"no trace within {span(waited)}; `rightpool trace {job.key.name} --summary` shows more")
            time.sleep(POLL_SECONDS)


def _state(trace: Trace) -> str:
    if trace.state is TraceState.WAITING:
        return "waiting for the program's next steps"
    return f"pod {trace.pod} is taking it" if trace.pod else "it is being taken"


@contextmanager
def _progress() -> Iterator[Any]:
    """Shows what is waited for: on a terminal one line that changes, else a line for each change."""
    terminal = sys.stderr.isatty()
    last = ""

    def say(text: str, seconds: float) -> None:
        nonlocal last
        if terminal:
            print(f"\r\x1b[K{text} ({seconds:.0f} s)", end="", file=sys.stderr, flush=True)
        elif text != last:
            print(text, file=sys.stderr, flush=True)
        last = text

    try:
        yield say
    finally:
        if terminal and last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# --- showing it --------------------------------------------------------------------------------------------------


def show(trace: Trace, summary: TraceSummary, page: Page) -> None:
    """Print what the trace says."""
    steps = "steps of an unknown number" if summary.steps is None else f"{summary.steps} steps"
    whose = "the device" if summary.on == "Device" else "the CPU"
    page.line(f"{steps} of rank {trace.rank} in pod {trace.pod}: {number(float(summary.seconds))} s of {whose}")
    page.heading("WHAT THE TIME GOES TO")
    rows = []
    for part in sorted(summary.parts, key=lambda one: -one.share):
        limit = "" if part.limit is None else f"without it at most {part.limit:.2f}× as fast"
        rows.append((_PARTS.get(part.part, part.part), _percent(part.share), limit))
    page.table((Column("PART"), Column("SHARE", right=True), Column("LIMIT")), rows)
    if summary.collectives:
        page.heading("COMMUNICATION")
        columns = (Column("OPERATION"), Column("COUNT", right=True), Column("SHARE", right=True))
        page.table(
            (*columns, Column("ALONE", right=True)),
            [
                (*_operation(one), NOTHING if one.exposed is None else _percent(one.exposed))
                for one in summary.collectives
            ],
        )
    page.heading("OPERATIONS BY THEIR OWN TIME")
    page.table(
        (Column("OPERATION"), Column("COUNT", right=True), Column("SHARE", right=True)),
        [_operation(one) for one in summary.operations],
    )


def _operation(one: TraceOperation) -> tuple[str, str, str]:
    return one.name, str(one.count), _percent(one.share)


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "<1%"


# --- the file ----------------------------------------------------------------------------------------------------


def fetch(client: ClusterClient, key: JobKey, trace: Trace, path: Path) -> None:
    """Write the trace that the sidecar keeps. The file is complete, or not there."""
    if trace.pod is None or trace.sha256 is None:
        raise CliError(f"no pod keeps trace {trace.id}")
    command = ("python3", "-m", "rightpool_profiler", "trace", trace.id)
    try:
        pieces = client.container_output(key.namespace, trace.pod, SIDECAR_CONTAINER, command, silence=SILENCE_SECONDS)
        with _replacing(path) as out:
            with tempfile.TemporaryFile() as packed:
                _receive(pieces, packed, trace)
                packed.seek(0)
                if path.suffix == ".gz":
                    _copy(packed, out)
                else:
                    with gzip.open(packed) as plain:
                        _copy(plain, out)
    except Forbidden as error:
        raise CliError(
            f"the file can't be read: you may not run commands in pods of namespace {key.namespace} "
            "(create and get pods/exec)"
        ) from error
    except NotFound as error:
        raise CliError(f"pod {trace.pod} is gone, and the file with it: have another trace taken") from error
    except ClusterError as error:
        raise CliError(f"the file can't be read from pod {trace.pod}: {error.message}") from error
    except (OSError, EOFError) as error:
        raise CliError(f"{path} can't be written: {error}") from error


def _receive(pieces: Iterator[bytes], packed: IO[bytes], trace: Trace) -> None:
    """The file as the sidecar sends it: a line about it, then its bytes, which are compared with the status."""
    head = b""
    for piece in pieces:
        head += piece
        if b"\n" in head or len(head) > _LONGEST_HEAD:
            break
    line, _, rest = head.partition(b"\n")
    try:
        about = json.loads(line)
        size = about.get("size")
    except (ValueError, AttributeError) as error:
        raise CliError(f"pod {trace.pod} sent no trace: {line[:200].decode('utf-8', 'replace')!r}") from error
    if not isinstance(size, int) or not 0 < size <= MAX_FILE_BYTES:
        message = "".join(letter for letter in str(about.get("message", "no size"))[:300] if letter.isprintable())
        raise CliError(f"the file can't be read from pod {trace.pod}: {message}")
    digest, received = hashlib.sha256(), 0
    for piece in _chained(rest, pieces):
        received += len(piece)
        if received > size:
            break
        digest.update(piece)
        packed.write(piece)
        if received == size:
            break
    if received != size or digest.hexdigest() != trace.sha256:
        raise CliError(f"the file came incomplete or changed ({received} of {size} bytes): try again")


def _chained(first: bytes, others: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from others


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
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
