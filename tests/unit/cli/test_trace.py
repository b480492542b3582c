"""`rightpool trace`: what it prints, and a file that comes whole or not at all, whatever the pod sends."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightpool.api.trace import (
    Trace,
    TraceFailure,
    TraceMemory,
    TraceOperation,
    TracePart,
    TraceRanks,
    TraceReason,
    TraceSpread,
    TraceState,
    TraceSummary,
)
from rightpool.api.traits import ModelTraits
from rightpool.cli import trace as command
from rightpool.cli import trace_files, trace_summary
from rightpool.cli.connection import CliError
from rightpool.cli.roofline import Roof
from rightpool.cli.table import Page
from rightpool.cluster.errors import Forbidden, NotFound, Unavailable
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.moves.trace_ranks import digest_of_all
from tests.unit.planning.jobs import POOLS, running

KEY = JobKey("vision", "resnet50")
BODY = b'{"traceEvents": []}' * 1000
PACKED = gzip.compress(BODY, mtime=0)
DIGEST = hashlib.sha256(PACKED).hexdigest()


def head(rank: int = 0, left: int = 0, **changed: Any) -> bytes:
    about = {"rank": rank, "size": len(PACKED), "sha256": DIGEST, "left": left, **changed}
    return json.dumps(about).encode() + b"\n"


HEAD = head()
SUMMARY = TraceSummary(
    "Device",
    0.5,
    4,
    (TracePart("Compute", 0.75, 4.0), TracePart("OverlappedCommunication", 0.01), TracePart("Input", 0.24, 1.316)),
    (TraceOperation("ncclDevKernel_AllReduce", 4, 0.01, 0.0),),
    (TraceOperation("gemm", 8, 0.004),),
    (TraceOperation("Communication", 4, 0.01), TraceOperation("Matrix", 8, 0.004)),
    cost=0.354,
)
TRACE = Trace("now", TraceState.CAPTURED, 1.8e9, 0, 1, "pod-1", sha256=DIGEST, summary=SUMMARY)


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
    trace_files.fetch(client, KEY, TRACE, path)  # type: ignore[arg-type]


def test_idle_time_has_other_reasons_only_where_some_are_told_apart() -> None:
    """XLA does not say what the host waits for."""
    for parts, label in (
        ((TracePart("Compute", 0.75, 4.0), TracePart("Idle", 0.25, 1.33)), "idle "),
        ((TracePart("Input", 0.75, 4.0), TracePart("Idle", 0.25, 1.33)), "idle for other reasons "),
    ):
        out = io.StringIO()
        trace_summary.show(TRACE, replace(SUMMARY, parts=parts), Page(out))
        (line,) = (line for line in out.getvalue().splitlines() if line.startswith("idle"))
        assert line.startswith(label) and line.removeprefix(label).lstrip().startswith("25%")


def test_what_is_printed() -> None:
    out = io.StringIO()
    trace_summary.show(TRACE, SUMMARY, Page(out))
    assert out.getvalue() == (
        "4 steps of rank 0 in pod pod-1: 0.5 s of the device\n"
        "The trace cost the program 0.354 s.\n"
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
        "KINDS OF OPERATIONS\n"
        "KIND           COUNT  SHARE\n"
        "communication      4     1%\n"
        "matrix             8    <1%\n"
        "\n"
        "OPERATIONS BY THEIR OWN TIME\n"
        "OPERATION  COUNT  SHARE\n"
        "gemm           8    <1%\n"
    )


ROOF = Roof("h100", "h100-sxm", 1e15, 2e12, measured=False)


def test_operations_with_their_point_in_the_roofline_and_memory() -> None:
    """Of a chip with a ridge at 500 FLOP for each byte."""
    operations = (
        TraceOperation("gemm", 8, 0.5, None, 6e14, 6e11),
        TraceOperation("norm", 8, 0.3, None, 1e12, 1e12),
        TraceOperation("Memcpy HtoD", 2, 0.1, None, None, 2e11),
        TraceOperation("other", 2, 0.1),
    )
    memory = TraceMemory(16 * 2**30, 0.43, (0, 2**30, 8 * 2**30, 16 * 2**30))
    shown = replace(SUMMARY, operations=operations, memory=memory)
    out = io.StringIO()
    trace_summary.show(TRACE, shown, Page(out), ROOF)
    assert out.getvalue().partition("OPERATIONS BY THEIR OWN TIME\n")[2] == (
        "OPERATION    COUNT  SHARE  FLOP/S  BYTE/S  FLOP/BYTE  OF ITS ROOF\n"
        "gemm             8    50%   600 T   600 G       1000          60%\n"
        "norm             8    30%     1 T     1 T          1          50%\n"
        "Memcpy HtoD      2    10%       -   200 G          -          10%\n"
        "other            2    10%       -       -          -            -\n"
        "\n"
        "MEMORY IN USE\n"
        "at most 16.0 GiB, after 43% of the time\n"
        "▁▁▅█\n"
    )
    for roof, where in ((None, "Device"), (ROOF, "Host")):
        out = io.StringIO()
        trace_summary.show(TRACE, replace(shown, on=where), Page(out), roof)
        assert "FLOP/BYTE" in out.getvalue() and "OF ITS ROOF" not in out.getvalue()


def test_the_roof_is_that_of_the_chip_that_was_traced() -> None:
    job = running()
    assert job.observed.profile is not None
    profile = replace(job.observed.profile, traits=ModelTraits(precision="bf16"))
    found = trace_summary.traced_roof(TRACE, job, profile, POOLS)
    assert found is not None and (found.pool, found.flops) == ("a100", POOLS["a100"].accelerator.peak_flops["bf16"])
    assert trace_summary.traced_roof(replace(TRACE, revision=7), job, profile, POOLS) is None, "it has moved"
    assert trace_summary.traced_roof(TRACE, job, profile, {}) is None
    assert trace_summary.traced_roof(TRACE, job, None, POOLS) is None
    unknown = replace(profile, traits=ModelTraits())
    assert trace_summary.traced_roof(TRACE, job, unknown, POOLS) is None


@pytest.mark.parametrize(("name", "content"), [("trace.json.gz", PACKED), ("trace.json", BODY)])
def test_the_file(tmp_path: Path, name: str, content: bytes) -> None:
    client = Client(HEAD + PACKED[:10], PACKED[10:])
    fetch(client, tmp_path / name)
    assert (tmp_path / name).read_bytes() == content
    assert client.asked[:3] == ("vision", "pod-1", "rightpool-profiler")
    assert client.asked[3] == ("python3", "-m", "rightpool_profiler", "trace", "now")


@given(st.lists(st.integers(1, 400), max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        (Client(head(size=10**12)), "no size"),
        (Client(head(rank=-1)), "no size"),
        (Client(head(left=True)), "no size"),
        (Client(head(sha256="A" * 64)), "no size"),
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


def test_what_can_not_be_written_is_told_before_a_trace_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (tmp_path, tmp_path / "gone" / "trace.json", file / "trace.json"):
        with pytest.raises(CliError, match="can't be written"):
            trace_files.check_output(path, every=False)
    for path in (file, tmp_path / "gone" / "traces", file / "traces"):
        with pytest.raises(CliError, match="can't be written"):
            trace_files.check_output(path, every=True)
    trace_files.check_output(file, every=False)
    trace_files.check_output(tmp_path, every=True)
    trace_files.check_output(tmp_path / "traces", every=True)
    assert not (tmp_path / "traces").exists()


# --- all ranks ---------------------------------------------------------------------------------------------------

RANKS = TraceRanks(
    captured=4,
    failed=10,
    pods=2,
    program=14,
    shown=1,
    straggler=1,
    parts=(
        TraceSpread("Compute", 0.3, 0, 0.4, 0.9, 1),
        TraceSpread("ExposedCommunication", 0.02, 1, 0.55, 0.6, 3),
    ),
    failures=(
        TraceFailure("pod-2", TraceReason.NO_STEPS, "the program made no step", 4),
        TraceFailure("pod-3", TraceReason.NO_AGENT, "nobody reports"),
    ),
)
EVERY = replace(TRACE, rank=None, ranks=RANKS, sha256=digest_of_all((rank, DIGEST) for rank in range(4)))


def test_what_is_printed_of_all_ranks() -> None:
    out = io.StringIO()
    trace_summary.show_ranks(RANKS, Page(out))
    trace_summary.show(EVERY, SUMMARY, Page(out))
    assert out.getvalue().startswith(
        "traced 4 of 14 ranks, in 2 pods\n"
        "rank 1 holds up the others: it communicates alone for 2% of its time, rank 3 for 60%\n"
        "\n"
        "WHAT THE TIME OF THE RANKS GOES TO\n"
        "PART                 LEAST  OF RANK  MEDIAN  MOST  OF RANK\n"
        "communicating alone     2%        1     55%   60%        3\n"
        "computing              30%        0     40%   90%        1\n"
        "\n"
        "WITHOUT A TRACE\n"
        "RANK  POD    REASON   MESSAGE\n"
        "   4  pod-2  NoSteps  the program made no step\n"
        "   -  pod-3  NoAgent  nobody reports\n"
        "and 8 more\n"
        "\n"
        "4 steps of rank 1 in pod pod-1: 0.5 s of the device\n"
        "The trace cost the program 0.354 s.\n"
    )


class Pods:
    """Pods that each send these bytes, or fail."""

    def __init__(self, **sent: bytes | Exception) -> None:
        self._sent = {name.replace("_", "-"): what for name, what in sent.items()}
        self.listed: tuple[Any, ...] = ()
        self.refused: Exception | None = None

    def list_all(self, resource: Any, namespace: str, *, labels: str) -> list[dict[str, Any]]:
        if self.refused is not None:
            raise self.refused
        self.listed = (resource.plural, namespace, labels)
        ended = {"metadata": {"name": "pod-0"}, "status": {"phase": "Succeeded"}}
        return [ended, *({"metadata": {"name": name}, "status": {"phase": "Running"}} for name in self._sent)]

    def container_output(self, namespace: str, pod: str, *_: Any, silence: float) -> Iterator[bytes]:
        what = self._sent[pod]
        if isinstance(what, Exception):
            raise what
        yield what[:100]
        yield what[100:]


def fetch_all(pods: Pods, folder: Path) -> tuple[list[str], list[str]]:
    written, problems = trace_files.fetch_all(pods, KEY, EVERY, folder)  # type: ignore[arg-type]
    assert all(path.read_bytes() == PACKED for path in written)
    names = [path.name for path in written]
    assert sorted(one.name for one in folder.iterdir()) == sorted(names), "and nothing half written"
    return names, problems


FIRST = head(0, 1) + PACKED + head(1) + PACKED
SECOND = head(2, 1) + PACKED + head(3) + PACKED
NO_TRACE = b'{"message": "this trace is not kept any more: the newest one is none"}\n'
NAMES = [f"rank-{rank}.pt.trace.json.gz" for rank in range(4)]


def test_a_file_for_each_rank(tmp_path: Path) -> None:
    pods = Pods(pod_1=FIRST, pod_2=SECOND, pod_3=NO_TRACE)
    assert fetch_all(pods, tmp_path / "traces") == (NAMES, []), "that a pod has none is in the status"
    assert pods.listed == ("pods", "vision", "rightpool.dev/profiledjob=resnet50,rightpool.dev/revision=1")
    assert (tmp_path / "traces" / NAMES[0]).stat().st_mode & 0o600 == 0o600
    assert fetch_all(pods, tmp_path / "traces")[0] == NAMES, "and once more"


def test_what_xla_has_recorded_lies_where_xprof_looks_for_it(tmp_path: Path) -> None:
    pods, folder = Pods(pod_1=FIRST, pod_2=NO_TRACE), tmp_path / "xprof"
    run = folder / "plugins" / "profile" / "now"
    paths = trace_files.fetch_xspaces(pods, KEY, EVERY, folder)  # type: ignore[arg-type]
    assert paths == [run / "rank-0.xplane.pb", run / "rank-1.xplane.pb"]
    assert all(path.read_bytes() == BODY for path in paths)
    assert sorted(path.name for path in run.iterdir()) == [path.name for path in paths], "and nothing half written"
    client = Client(HEAD + PACKED)
    (path,) = trace_files.fetch_xspaces(client, KEY, TRACE, folder)  # type: ignore[arg-type]
    assert path.read_bytes() == BODY and client.asked[1] == "pod-1"
    assert client.asked[3] == ("python3", "-m", "rightpool_profiler", "trace", "now", "xspace")


@pytest.mark.parametrize(
    "body", [NO_TRACE, HEAD + PACKED[:-5], b'{"message": "nothing that XLA has written is kept"}\n']
)
def test_without_anything_of_xla_no_folder_is_left(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(CliError, match="trace now has no file of XLA that can be read: "):
        trace_files.fetch_xspaces(Client(body), KEY, TRACE, tmp_path / "xprof")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("second", "names", "problem"),
    [
        (NotFound("no", status=404), NAMES[:2], "pod pod-2 is gone"),
        (Unavailable("broken pipe"), NAMES[:2], "broken pipe"),
        (head(2, 1) + PACKED + head(3) + PACKED[:-1], NAMES[:3], "incomplete or changed"),
        (head(2, 1) + PACKED, NAMES[:3], "sent no trace"),
        (head(1, 1) + PACKED, NAMES[:2], "sent rank 1 twice"),
        (head(2, 1) + PACKED + head(2) + PACKED, NAMES[:3], "sent rank 2 twice"),
        (NO_TRACE, NAMES[:2], "not kept any more"),
    ],
)
def test_what_one_pod_does_not_send_does_not_lose_the_others(
    tmp_path: Path, second: bytes | Exception, names: list[str], problem: str
) -> None:
    written, problems = fetch_all(Pods(pod_1=FIRST, pod_2=second), tmp_path / "traces")
    assert written == names and len(problems) == 1 and problem in problems[0]


def test_a_pod_that_has_ended_since(tmp_path: Path) -> None:
    assert fetch_all(Pods(pod_1=FIRST), tmp_path) == (NAMES[:2], ["their pods are gone, and the files with them"])


def nothing_comes(pods: Pods, folder: Path, message: str) -> None:
    with pytest.raises(CliError, match=message):
        trace_files.fetch_all(pods, KEY, EVERY, folder)  # type: ignore[arg-type]


def test_files_that_are_not_those_of_the_status(tmp_path: Path) -> None:
    other = gzip.compress(b"other", mtime=0)
    lie = head(3, size=len(other), sha256=hashlib.sha256(other).hexdigest()) + other
    nothing_comes(Pods(pod_1=FIRST, pod_2=head(2, 1) + PACKED + lie), tmp_path / "traces", "not those of the job's")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / NAMES[0]).write_text("mine")
    nothing_comes(Pods(pod_1=FIRST, pod_2=head(2, 1) + PACKED + lie), tmp_path / "mine", "not those of the job's")
    assert (tmp_path / "mine" / NAMES[0]).read_text() == "mine"


def test_no_file_comes(tmp_path: Path) -> None:
    nothing_comes(Pods(pod_1=Forbidden("no", status=403)), tmp_path / "traces", "you may not run commands in pods")
    nothing_comes(Pods(), tmp_path / "traces", "no file of trace now can be read: their pods are gone")
    refused = Pods()
    refused.refused = Forbidden("no", status=403)
    nothing_comes(refused, tmp_path / "traces", "you may not list pods of namespace vision")
    assert list(tmp_path.iterdir()) == [], "no empty folder is left"


def test_a_pod_that_sends_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_files, "MAX_FILE_BYTES", 2 * len(PACKED))
    endless = b"".join(head(rank, 9) + PACKED for rank in range(9))
    written, problems = fetch_all(Pods(pod_1=endless), tmp_path / "traces")
    assert written == NAMES[:2] and "more data than allowed" in problems[0]


def test_a_missing_file_is_an_error_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CliError, match=r"2 of 4 files can't be read.*pod pod-2 is gone"):
        command._write(Pods(pod_1=FIRST, pod_2=NotFound("no", status=404)), KEY, EVERY, tmp_path)  # type: ignore[arg-type]
    assert "wrote 2 files" in capsys.readouterr().out


def test_one_rank_or_all() -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert parser.parse_args(["x", "--all"]).all and not parser.parse_args(["x", "--rank", "1"]).all
    with pytest.raises(SystemExit):
        parser.parse_args(["x", "--all", "--rank", "1"])
