"""`rightpool trace`: what it prints, and a file that comes whole or not at all, whatever the pod sends."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightpool.api.trace import Trace, TraceOperation, TracePart, TraceState, TraceSummary
from rightpool.cli import trace as command
from rightpool.cli.connection import CliError
from rightpool.cli.table import Page
from rightpool.cluster.errors import Forbidden, NotFound, Unavailable
from rightpool.planning.job import JobKey

KEY = JobKey("vision", "resnet50")
BODY = b'{"traceEvents": []}' * 1000
PACKED = gzip.compress(BODY, mtime=0)
HEAD = json.dumps({"size": len(PACKED)}).encode() + b"\n"
SUMMARY = TraceSummary(
    "Device",
    0.5,
    4,
    (TracePart("Compute", 0.75, 4.0), TracePart("OverlappedCommunication", 0.01), TracePart("Input", 0.24, 1.316)),
    (TraceOperation("ncclDevKernel_AllReduce", 4, 0.01, 0.0),),
    (TraceOperation("gemm", 8, 0.004),),
)
TRACE = Trace(
    "now", 0, TraceState.CAPTURED, 1.8e9, 1, "pod-1", sha256=hashlib.sha256(PACKED).hexdigest(), summary=SUMMARY
)


class Client:
    """A pod that sends these pieces, and then perhaps an error."""

    def __init__(self, *pieces: bytes, error: Exception | None = None) -> None:
        self._pieces, self._error = pieces, error
        self.asked: tuple[Any, ...] = ()

    def container_output(self, *arguments: Any, silence: float) -> Iterator[bytes]:
        self.asked = arguments
        yield from self._pieces
        if self._error is not None:
            raise self._error


def fetch(client: Client, path: Path) -> None:
    command.fetch(client, KEY, TRACE, path)  # type: ignore[arg-type]


def test_what_is_printed() -> None:
    out = io.StringIO()
    command.show(TRACE, SUMMARY, Page(out))
    assert out.getvalue() == (
        "4 steps of rank 0 in pod pod-1: 0.5 s of the device\n"
        "\n"
        "WHAT THE TIME GOES TO\n"
        "PART                           SHARE  LIMIT\n"
        "computing                        75%  without it at most 4.00× as fast\n"
        "waiting for data                 24%  without it at most 1.32× as fast\n"
        "communicating while computing     1%\n"
        "\n"
        "COMMUNICATION\n"
        "OPERATION                COUNT  SHARE  ALONE\n"
        "ncclDevKernel_AllReduce      4     1%     0%\n"
        "\n"
        "OPERATIONS BY THEIR OWN TIME\n"
        "OPERATION  COUNT  SHARE\n"
        "gemm           8    <1%\n"
    )


@pytest.mark.parametrize(("name", "content"), [("trace.json.gz", PACKED), ("trace.json", BODY)])
def test_the_file(tmp_path: Path, name: str, content: bytes) -> None:
    client = Client(HEAD + PACKED[:10], PACKED[10:])
    fetch(client, tmp_path / name)
    assert (tmp_path / name).read_bytes() == content
    assert client.asked[:3] == ("vision", "pod-1", "rightpool-profiler")
    assert client.asked[3] == ("python3", "-m", "rightpool_profiler", "trace", "now")


@given(st.lists(st.integers(1, 400), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_how_the_stream_is_cut_makes_no_difference(tmp_path: Path, sizes: list[int]) -> None:
    data, pieces = HEAD + PACKED, []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    fetch(Client(*pieces, data), tmp_path / "trace.json")
    assert (tmp_path / "trace.json").read_bytes() == BODY


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (Client(), "sent no trace"),
        (Client(b"\xff" * 10_000), "sent no trace"),
        (Client(b"[]\n"), "sent no trace"),
        (Client(b'{"message": "not kept\\u001b[31m"}\n'), "the file can't be read from pod pod-1: not kept[31m"),
        (Client(b'{"size": 1e18}\n'), "no size"),
        (Client(json.dumps({"size": 10**12}).encode() + b"\n"), "no size"),
        (Client(HEAD, PACKED[:-1]), "incomplete or changed"),
        (Client(HEAD, PACKED[:-1] + b"x"), "incomplete or changed"),
        (Client(HEAD, PACKED + b"x"), "incomplete or changed"),
        (Client(HEAD, PACKED[:9], error=Unavailable("broken pipe")), "broken pipe"),
        (Client(error=Forbidden("no", status=403)), "you may not run commands in pods of namespace vision"),
        (Client(error=NotFound("no", status=404)), "pod pod-1 is gone, and the file with it"),
    ],
)
def test_a_file_that_does_not_come(tmp_path: Path, client: Client, message: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text("mine")
    with pytest.raises(CliError) as raised:
        fetch(client, path)
    assert message in str(raised.value)
    assert [one.name for one in tmp_path.iterdir()] == ["trace.json"] and path.read_text() == "mine"


def test_a_folder_that_is_not_there_is_told_before_a_trace_is_taken(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone" / "trace.json"):
        with pytest.raises(CliError, match="can't be written"):
            command._check_folder(path)


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "1000001", ""])
def test_ranks_that_are_none(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        command._rank(text)
