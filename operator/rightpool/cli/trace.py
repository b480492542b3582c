"""`rightpool trace NAME`: have some steps of a job traced, print what their time went to, and write them to files.

The request is the annotation rightpool.dev/trace, written as the user; the operator has the trace taken, and puts its
summary into the job's status. The files are read from the sidecars' containers by exec, as the user too: who may run
commands in the job's pods may read what they do.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rightpool.api.trace import MAX_RANK, Trace, TraceState
from rightpool.api.wording import how_many, span
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.jobs import add_job_argument, job_key, stored_job
from rightpool.cli.number_range import whole_number
from rightpool.cli.recorded import recorded_profile
from rightpool.cli.roofline import Roof
from rightpool.cli.table import Page
from rightpool.cli.trace_files import check_output, fetch, fetch_all, fetch_xspaces
from rightpool.cli.trace_summary import show, show_ranks, traced_roof
from rightpool.cli.view import ClusterView
from rightpool.cluster.client import MERGE_CONTENT, ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_TRACE, TRACE_ALL
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.moves.trace import PAUSE_SECONDS, longest
from rightpool.reporting.stored_job import StoredJob

POLL_SECONDS: Final = 1.0
TAKEN_SECONDS: Final = PAUSE_SECONDS + 60.0
"""Until an operator that runs has taken the request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--rank", type=whole_number(0, MAX_RANK), default=0, help="the rank of the process to trace; default: 0"
    )
    which.add_argument("--all", action="store_true", help="trace all ranks, one after the other in each pod")
    parser.add_argument("--summary", action="store_true", help="show the newest trace, without taking one")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="write the trace to this file, compressed if it is .gz; of all ranks, to a file for each in this folder",
    )
    parser.add_argument(
        "--xprof",
        type=Path,
        metavar="FOLDER",
        help="write what XLA's profiler has recorded of a JAX program into this folder, as `xprof FOLDER` reads it",
    )
    add_connection_arguments(parser, outputs=("table",))


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 done, 1 there is no trace."""

    def work(connection: Connection) -> None:
        key = job_key(arguments.name, connection.namespace)
        stored, rank = stored_job(connection.client, key), None if arguments.all else arguments.rank
        if arguments.output is not None and not arguments.summary:
            check_output(arguments.output, every=arguments.all)
        if arguments.xprof is not None:
            check_output(arguments.xprof, every=True)
        trace = stored.job.state.trace if arguments.summary else _taken(connection.client, stored, rank)
        if trace is None:
            raise CliError(f"no trace of {key} was taken so far: to take one, leave out --summary")
        if arguments.output is not None and arguments.summary:
            check_output(arguments.output, every=trace.ranks is not None)
        if trace.state is TraceState.FAILED:
            raise CliError(f"there is no trace ({trace.reason}): {trace.message}")
        if trace.state is not TraceState.CAPTURED or trace.summary is None:
            raise CliError(f"trace {trace.id} is still being taken: it is {trace.state.value}")
        page = Page()
        if trace.ranks is not None:
            show_ranks(trace.ranks, page)
        view = ClusterView(connection.client, connection.namespace, arguments.operator_namespace)
        show(trace, trace.summary, page, _roof(view, stored, trace))
        if arguments.output is not None:
            _write(connection.client, key, trace, arguments.output)
        if arguments.xprof is not None:
            written = fetch_xspaces(connection.client, key, trace, arguments.xprof)
            print(f"\nwrote {how_many(len(written), 'file')}: open by `xprof {arguments.xprof}`")

    return carry_out(arguments, "trace", work)


def _write(client: ClusterClient, key: JobKey, trace: Trace, path: Path) -> None:
    if trace.ranks is None:
        fetch(client, key, trace, path)
        print(f"\nwrote {path}: open it in Perfetto or chrome://tracing")
        return
    written, problems = fetch_all(client, key, trace, path)
    print(f"\nwrote {how_many(len(written), 'file')} to {path}: open one in Perfetto, or the folder in TensorBoard")
    if problems:
        lacking = trace.ranks.captured - len(written)
        raise CliError(
            f"{lacking} of {how_many(trace.ranks.captured, 'file')} can't be read, so that none could be compared with "
            f"the job's status: {'; '.join(problems)}"
        )


def _roof(view: ClusterView, stored: StoredJob, trace: Trace) -> Roof | None:
    """Of the chip that was traced; None also for whom the pools can't be read."""
    try:
        pools = view.fleet().pools
    except ClusterError:
        return None
    return traced_roof(trace, stored.job, recorded_profile(stored), pools)


# --- asking for it -----------------------------------------------------------------------------------------------


def _taken(client: ClusterClient, stored: StoredJob, rank: int | None) -> Trace:
    """Ask for a trace, and wait until it is taken, or has failed."""
    job = stored.job
    if job.state.finished is not None:
        raise CliError(f"{job.key} has {job.state.finished.lower()}: `--summary` shows the last trace of it")
    if not job.spec.managed:
        raise CliError(f"spec.managedBy of {job.key} names {job.spec.managed_by}, which takes no traces")
    identity = f"cli-{secrets.token_hex(4)}"
    value = identity if rank == 0 else f"{identity}:{TRACE_ALL if rank is None else rank}"
    body: dict[str, Any] = {"metadata": {"annotations": {ANNOTATION_TRACE: value}}}
    client.request("PATCH", PROFILED_JOBS.path(job.key.namespace, job.key.name), body=body, content=MERGE_CONTENT)
    began = time.monotonic()
    with _progress() as say:
        while True:
            trace = stored_job(client, job.key).job.state.trace
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
            if waited > longest(rank) + 2 * TAKEN_SECONDS:
                raise CliError(f"no trace within {span(waited)}; `rightpool trace {job.key.name} --summary` shows more")
            time.sleep(POLL_SECONDS)


def _state(trace: Trace) -> str:
    if trace.state is TraceState.WAITING:
        return "waiting for the program's next steps"
    if trace.rank is None:
        return "the ranks of each pod have their turns"
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
