"""A real sidecar whose shared directory the program fills with other things: it answers, and writes nowhere else."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import Pod

REPORT: Final = {
    "pid": 40,
    "start": 1,
    "rank": 0,
    "framework": "torch",
    "steps": 5,
    "seconds": 0.0,
    "counts": [0] * 17,
    "cpu": 0.0,
    "at": 1.0,
}


def _fifo(path: Path, kept: Path) -> None:
    os.mkfifo(path)


def _link(path: Path, kept: Path) -> None:
    path.symlink_to(kept)


def _folder(path: Path, kept: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("obstacle", [_fifo, _link, _folder])
@pytest.mark.parametrize("command", ["trace", "checkpoint"])
def test_what_lies_where_a_request_is_written(
    pod: Pod, tmp_path: Path, command: str, obstacle: Callable[[Path, Path], None]
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("the sidecar's own")
    obstacle(pod.shared / "commands" / f"{command}.tmp", kept)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.sendto(json.dumps(REPORT).encode(), str(pod.shared / "profiler.sock"))
    pod.until(lambda: contract.STEPS in pod.metrics())
    path = contract.PATH_TRACE if command == "trace" else contract.PATH_CHECKPOINT
    status, answer = pod.post({"id": "one"}, path=path)
    asked = pod.shared / "commands" / f"{command}.json"
    if obstacle is _folder:
        assert not asked.exists()
        assert (status, answer.get("reason")) in ((202, "NoSpace"), (409, None)), answer
    else:
        assert status == 202
        assert not asked.is_symlink() and json.loads(asked.read_text())["id"] == "one"
    assert kept.read_text() == "the sidecar's own"
    assert pod.get(contract.PATH_HEALTH) == "ok\n"


def test_traces_that_shrink_while_they_are_read(pod: Pod) -> None:
    """Again and again, and then one that is whole: the sidecar is there to read it."""
    head, event = b'{"traceEvents": [', {"ph": "X", "cat": "kernel", "name": "a" * 80, "pid": 0, "tid": 7, "dur": 1.0}
    events = [json.dumps({**event, "ts": 2.0 * at}).encode() for at in range(30_000)]
    whole = head + b",".join(events) + b"]}"
    folder = pod.shared / "traces"
    for number in range(4):  # each may end at once, or be read whole: the unit tests shrink it at the worst moment
        path = folder / f"{number}.kineto.json"
        (folder / "unfinished").write_bytes(whole)
        (folder / "unfinished").rename(path)
        size = len(whole)
        while path.exists():
            try:
                os.truncate(path, size := max(0, size - 50_000))
            except FileNotFoundError:
                break
            if not size:
                path.unlink(missing_ok=True)
    (folder / "40.kineto.json").write_bytes(whole)
    pod.until(lambda: not (folder / "40.kineto.json").exists())
    assert pod.sidecar is not None and pod.sidecar.poll() is None
    assert pod.get(contract.PATH_HEALTH) == "ok\n"
