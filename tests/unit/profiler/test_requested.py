"""Traces that users ask for, in the sidecar: the agent's answers, hostile files, and volumes without room."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rightpool import contract
from rightpool_profiler.state import State
from rightpool_profiler.traces import kept as volume
from rightpool_profiler.traces import requested
from rightpool_profiler.traces.answer import MESSAGES
from rightpool_profiler.traces.kept import Kept, Unkept
from rightpool_profiler.traces.requested import Requested

from .traced_pod import TRACE, Site
from .xspaces import op, xspace


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_from_the_request_to_the_file(site: Site) -> None:
    site.report()
    assert site.ask()["state"] == "waiting"
    command = json.loads((site.shared / "commands" / "trace.json").read_text())
    assert command == {"id": "one", "rank": 0, "at": 1.8e9}
    site.report("capturing")
    site.look()
    assert site.ask()["state"] == "capturing"
    site.write()
    site.report("written", cost=0.35)
    site.look()
    answer = site.ask()
    (rank,) = answer["ranks"]
    assert rank["summary"]["cost"] == 0.35
    assert (answer["state"], rank["state"], rank["bytes"]) == (
        contract.TRACE_CAPTURED,
        contract.TRACE_CAPTURED,
        len(TRACE),
    )
    assert rank["summary"]["parts"][contract.PART_COMPUTE] == 0.5
    assert list((site.shared / "traces").iterdir()) == list((site.shared / "commands").iterdir()) == []
    status, sent = site.send("one")
    head, _, packed = sent.partition(b"\n")
    about = {"rank": 0, "size": len(packed), "sha256": hashlib.sha256(packed).hexdigest(), "left": 0}
    assert (status, json.loads(head)) == (0, about)
    assert gzip.decompress(packed) == TRACE
    assert Requested(site.shared, site.kept, 0.0).ask("one", 0, site.state, 0.0, 0.0).to_dict() == answer, (
        "after a restart"
    )


@pytest.mark.parametrize("word", ["NoSteps", "ProgramProfiles", "UnsupportedVersion", "CaptureFailed", "NoSpace"])
def test_the_agents_reason_is_the_answer(site: Site, word: str) -> None:
    assert word in contract.TRACE_REASONS
    site.report()
    site.ask()
    site.report(word)
    site.look()
    assert (site.ask()["state"], site.ask()["reason"]) == ("failed", word)


def test_every_word_of_the_agent_is_of_the_contract() -> None:
    assert set(MESSAGES) | {"TooLarge", "Unreadable"} == set(contract.TRACE_REASONS)


def test_what_another_rank_says_is_of_another_request(site: Site) -> None:
    site.report("written", rank=1)
    site.report(rank=0)
    site.ask(rank=0)
    site.look()
    assert site.ask(rank=0)["state"] == "waiting"
    assert site.ask("two", rank=5)["reason"] == "NoRank"
    assert site.ask(rank=0)["state"] == "waiting", "a request that can't be served replaces none"


def test_nobody_answers(site: Site) -> None:
    site.ask()
    site.look()
    assert site.ask()["state"] == "waiting"
    site.look(requested.NO_AGENT_SECONDS)
    assert site.ask()["reason"] == "NoAgent"
    site.report()
    site.ask("two")
    site.look(requested.NO_AGENT_SECONDS)
    assert site.ask("two")["state"] == "waiting", "the process was there, and may be compiling"
    site.look(requested.LONGEST)
    assert site.ask("two")["reason"] == "NoSteps"


@pytest.mark.parametrize("ranks", [(), (1,)])
def test_a_program_that_is_still_being_imported(site: Site, ranks: tuple[int, ...]) -> None:
    """Its process is waited for in a pod that has just started, also where another one was faster."""
    site.requested = Requested(site.shared, site.kept, site.now)
    for rank in ranks:
        site.report(rank=rank)
    assert site.ask()["state"] == "waiting"
    site.look(requested.START_SECONDS - 10)
    assert site.ask()["state"] == "waiting"
    site.report()
    site.look()
    site.look(20)
    assert site.ask()["state"] == "waiting", "it came in time"


@pytest.mark.parametrize(("ranks", "reason"), [((), "NoAgent"), ((1,), "NoRank")])
def test_a_process_that_never_comes(site: Site, ranks: tuple[int, ...], reason: str) -> None:
    site.requested = Requested(site.shared, site.kept, site.now)
    site.ask()
    site.now += requested.START_SECONDS
    for rank in ranks:
        site.report(rank=rank)
    site.look()
    assert site.ask()["reason"] == reason


def test_another_request_comes_in_between(site: Site) -> None:
    site.report()
    site.ask()
    site.write()
    site.report("written")
    found = site.requested.look(site.state, site.now, 1.8e9)
    assert found is not None
    site.ask("two")
    site.requested.settle(found, site.requested.read(found))
    assert site.ask("two")["state"] == "waiting"
    assert site.files() == [], "nobody would ask for it"


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    state = State(10.0, 1)
    answer = Requested(tmp_path / "gone", tmp_path, 0.0).ask("one", 0, state, 0.0, 0.0)
    assert (answer.state, answer.reason) == ("failed", "NoSpace")


def keep(source: Path, kept: Path, room: int = volume.MAX_KEPT_BYTES) -> dict[str, Any]:
    return Kept(kept).keep(source, kept / "newest.json.gz", room)


def refused(source: Path, kept: Path, room: int = volume.MAX_KEPT_BYTES) -> str:
    with pytest.raises(Unkept) as raised:
        keep(source, kept, room)
    assert "\n" not in str(raised.value) and len(str(raised.value)) <= 200
    return raised.value.reason


XLA_TRACE = xspace({"/host:CPU": {"thread": [op("dot.1", 100 * run, 100 * run + 30, run) for run in range(6)]}})


@pytest.mark.parametrize(("name", "trace"), [("7.requested.json", TRACE), ("7.requested.xplane.pb", XLA_TRACE)])
def test_files_that_are_no_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, trace: bytes) -> None:
    source, kept = tmp_path / name, tmp_path / "kept"
    kept.mkdir()
    assert volume.written(tmp_path, 7).name == "7.requested.json", "where there is none"
    source.write_bytes(trace)
    assert volume.written(tmp_path, 7) == source
    before = keep(source, kept)
    good = sorted((path.name, path.read_bytes()) for path in kept.iterdir())
    secret = tmp_path / "secret"
    secret.write_bytes(trace)
    source.unlink()
    assert refused(source, kept) == "CaptureFailed"
    source.symlink_to(secret)
    assert refused(source, kept) == "CaptureFailed", "links are not followed"
    source.unlink()
    os.mkfifo(source)
    assert refused(source, kept) == "CaptureFailed"
    source.unlink()
    for content in (b"", b"\x00" * 100, trace[:-30], b'{"traceEvents": [' + b"[" * 100_000):
        source.write_bytes(content)
        assert refused(source, kept) == "Unreadable"
    source.write_bytes(trace)
    assert refused(source, kept, room=10) == "TooLarge"
    monkeypatch.setattr(volume, "MAX_BYTES", 10)
    assert refused(source, kept) == "TooLarge"
    monkeypatch.undo()
    for temporary in {"copy.tmp", "made.tmp"} if trace is XLA_TRACE else {"copy.tmp"}:
        (kept / temporary).symlink_to("/dev/full")
        assert refused(source, kept) == "NoSpace"
    assert sorted((path.name, path.read_bytes()) for path in kept.iterdir()) == good, "the one before is still there"
    assert keep(source, kept) == before


def test_what_xla_has_written_is_kept_beside_what_is_made_of_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.report()
    site.ask()
    (site.shared / "traces" / "40.requested.xplane.pb").write_bytes(XLA_TRACE)
    site.report("written")
    site.look()
    answer = site.ask()
    assert answer["state"] == contract.TRACE_CAPTURED and len(site.files()) == 2
    assert answer["ranks"][0]["packed"] == sum((site.kept / name).stat().st_size for name in site.files())
    status, sent = site.send("one", of_xla=True)
    head, _, packed = sent.partition(b"\n")
    about = {"rank": 0, "size": len(packed), "sha256": hashlib.sha256(packed).hexdigest(), "left": 0}
    assert (status, json.loads(head)) == (0, about) and gzip.decompress(packed) == XLA_TRACE
    assert b"traceEvents" in gzip.decompress(site.send("one")[1].partition(b"\n")[2])
    site.ask("two")
    site.write()
    site.report("written", "two")
    site.look()
    assert site.ask("two")["state"] == contract.TRACE_CAPTURED and len(site.files()) == 1, "both are gone"
    status, sent = site.send("two", of_xla=True)
    assert status == 1 and json.loads(sent) == {"message": "nothing that XLA has written is kept of this trace"}


def test_both_files_of_a_trace_of_xla_share_the_room(tmp_path: Path) -> None:
    source, kept = tmp_path / "7.requested.xplane.pb", tmp_path / "kept"
    kept.mkdir()
    source.write_bytes(XLA_TRACE)
    packed = keep(source, kept)["packed"]
    assert keep(source, kept, room=packed)["packed"] == packed and len(list(kept.iterdir())) == 2
    alone = tmp_path / "alone"
    alone.mkdir()
    made = keep(source, alone, room=packed - 1)["packed"]
    (path,) = alone.iterdir()
    assert path.name == "newest.json.gz" and path.stat().st_size == made < packed
    assert refused(source, kept, room=made - 1) == "TooLarge"


def test_a_trace_that_is_not_kept_is_not_sent(tmp_path: Path) -> None:
    out = io.BytesIO()
    assert Kept(tmp_path).send("one", out) == 1
    assert "message" in json.loads(out.getvalue())
    (tmp_path / "newest.json").write_text("[]")
    assert Kept(tmp_path).send("one", out) == 1
