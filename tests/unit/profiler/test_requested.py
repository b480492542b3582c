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
from rightpool_profiler import state
from rightpool_profiler.report import parse
from rightpool_profiler.state import State
from rightpool_profiler.traces import kept as volume
from rightpool_profiler.traces import requested
from rightpool_profiler.traces.answer import MESSAGES
from rightpool_profiler.traces.kept import Kept, Unkept
from rightpool_profiler.traces.requested import Requested

from .test_summary import event, text

TRACE = text([event("cpu_op", "aten::mm", 0, 10), event("Trace", "PyTorch Profiler (0)", 0, 20)])


class Site:
    """A sidecar, and an agent that says what it is told to."""

    def __init__(self, folder: Path) -> None:
        self.shared, self.kept = folder / "shared", folder / "kept"
        for path in (self.kept, self.shared / "commands", self.shared / "traces"):
            path.mkdir(parents=True)
        self.state = State(10.0, 1)
        self.requested = Requested(self.shared, self.kept, 0.0)
        self.now = requested.START_SECONDS + 100.0

    def ask(self, identity: str = "one", rank: int | None = 0) -> dict[str, Any]:
        return self.requested.ask(identity, rank, self.state, self.now, 1.8e9).to_dict()

    def report(
        self, word: str = "", identity: str = "one", rank: int = 0, world: int = 1, steps: int = 0, pid: int = 0
    ) -> None:
        counters = {"steps": steps, "seconds": 0.0, "counts": [0] * 17, "cpu": 0.0, "framework": "torch"}
        message = {"pid": pid or 40 + rank, "start": 1, "rank": rank, "world": world, "at": self.now, **counters}
        if word:
            message["trace"] = {"id": identity, "state": word}
        self.state.apply(parse(json.dumps(message).encode()), self.now, 1.8e9)

    def look(self, seconds: float = 1.0) -> None:
        self.now += seconds
        found = self.requested.look(self.state, self.now, 1.8e9 + self.now)
        if found is not None:
            self.requested.settle(found, self.requested.read(found))

    def write(self, rank: int = 0, content: bytes = TRACE) -> None:
        (self.shared / "traces" / f"{40 + rank}.requested.json").write_bytes(content)

    def turn(self) -> int | None:
        """The rank that the agents are asked for."""
        command = self.shared / "commands" / "trace.json"
        return int(json.loads(command.read_text())["rank"]) if command.exists() else None

    def serve(self, rank: int, word: str = "written", **about: Any) -> None:
        """This rank's agent has its turn, and says so."""
        if word == "written":
            self.write(rank)
        self.report(word, "all:all", rank, **about)
        self.look()
        self.look()

    def files(self) -> list[str]:
        return sorted(path.name for path in self.kept.iterdir() if path.name != volume.ANSWER)

    def send(self, identity: str) -> tuple[int, bytes]:
        out = io.BytesIO()
        return Kept(self.kept).send(identity, out), out.getvalue()


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
    site.report("written")
    site.look()
    answer = site.ask()
    (rank,) = answer["ranks"]
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


def test_files_that_are_no_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, kept = tmp_path / "source", tmp_path / "kept"
    kept.mkdir()
    source.write_bytes(TRACE)
    before = keep(source, kept)
    good = sorted((path.name, path.read_bytes()) for path in kept.iterdir())
    secret = tmp_path / "secret"
    secret.write_bytes(TRACE)
    source.unlink()
    assert refused(source, kept) == "CaptureFailed"
    source.symlink_to(secret)
    assert refused(source, kept) == "CaptureFailed", "links are not followed"
    source.unlink()
    os.mkfifo(source)
    assert refused(source, kept) == "CaptureFailed"
    source.unlink()
    for content in (b"", b"\x00" * 100, TRACE[:-30], b'{"traceEvents": [' + b"[" * 100_000):
        source.write_bytes(content)
        assert refused(source, kept) == "Unreadable"
    source.write_bytes(TRACE)
    assert refused(source, kept, room=10) == "TooLarge"
    monkeypatch.setattr(volume, "MAX_BYTES", 10)
    assert refused(source, kept) == "TooLarge"
    monkeypatch.undo()
    (kept / "copy.tmp").symlink_to("/dev/full")
    assert refused(source, kept) == "NoSpace"
    assert sorted((path.name, path.read_bytes()) for path in kept.iterdir()) == good, "the one before is still there"
    assert keep(source, kept) == before


def test_a_trace_that_is_not_kept_is_not_sent(tmp_path: Path) -> None:
    out = io.BytesIO()
    assert Kept(tmp_path).send("one", out) == 1
    assert "message" in json.loads(out.getvalue())
    (tmp_path / "newest.json").write_text("[]")
    assert Kept(tmp_path).send("one", out) == 1


# --- all ranks ---------------------------------------------------------------------------------------------------


def program(site: Site, world: int = 3, ranks: int = 3) -> None:
    for rank in range(ranks):
        site.report(rank=rank, world=world, steps=5)


def test_all_ranks_have_their_turns_one_after_the_other(site: Site) -> None:
    program(site)
    assert site.ask("all", None)["state"] == "waiting"
    for rank in range(3):
        assert site.turn() == rank
        site.look(30)
        program(site)
        assert site.turn() == rank, "the next one waits for it"
        site.serve(rank, world=3, steps=5)
    answer = site.ask("all", None)
    assert (answer["state"], answer["rank"], answer["world"]) == (contract.TRACE_CAPTURED, "all", 3)
    assert [(one["rank"], one["state"]) for one in answer["ranks"]] == [(rank, "captured") for rank in range(3)]
    assert site.turn() is None and len(site.files()) == 3
    status, sent = site.send("all")
    found = []
    while sent:
        head, _, rest = sent.partition(b"\n")
        about = json.loads(head)
        packed, sent = rest[: about["size"]], rest[about["size"] :]
        assert hashlib.sha256(packed).hexdigest() == about["sha256"] and gzip.decompress(packed) == TRACE
        found.append((about["rank"], about["left"]))
    assert (status, found) == (0, [(0, 2), (1, 1), (2, 0)])


def test_an_answer_is_short_until_it_is_over(site: Site) -> None:
    program(site, ranks=2)
    site.ask("all", None)
    site.serve(0, world=3, steps=5)
    wire = site.requested.ask("all", None, site.state, site.now, 0.0).to_wire()
    assert (wire["state"], wire["ranks"]) == ("capturing", [])
    site.serve(1, world=3, steps=5)
    wire = site.requested.ask("all", None, site.state, site.now, 0.0).to_wire()
    assert len(wire["ranks"]) == 2, "the third is another pod's"


def test_what_fails_for_one_rank_does_not_lose_the_others(site: Site) -> None:
    program(site)
    site.ask("all", None)
    site.serve(0, "ProgramProfiles", world=3, steps=5)
    site.serve(1, world=3, steps=5)
    site.write(2, b"no trace")
    site.report("written", "all:all", 2, world=3, steps=5)
    site.look()
    site.look()
    answer = site.ask("all", None)
    assert answer["state"] == contract.TRACE_CAPTURED
    assert [one["reason"] for one in answer["ranks"]] == ["ProgramProfiles", "", "Unreadable"]
    assert list((site.shared / "traces").iterdir()) == []
    assert len(site.files()) == 1


def test_where_no_rank_has_one_the_first_reason_is_the_requests(site: Site) -> None:
    program(site, world=2, ranks=2)
    site.ask("all", None)
    site.serve(0, "UnsupportedVersion", world=2, steps=5)
    site.serve(1, "CaptureFailed", world=2, steps=5)
    answer = site.ask("all", None)
    assert (answer["state"], answer["reason"], len(answer["ranks"])) == ("failed", "UnsupportedVersion", 2)


def test_ranks_that_come_later_are_waited_for(site: Site) -> None:
    """Until one of them makes steps: then all ranks of the program are there."""
    site.requested = Requested(site.shared, site.kept, site.now)
    site.report(rank=0, world=2)
    site.ask("all", None)
    site.look(20)
    assert site.turn() is None, "it is still importing its framework"
    program(site, world=2, ranks=1)
    site.look()
    assert site.turn() == 0
    site.report(rank=1, world=2)
    site.serve(0, world=2, steps=5)
    assert site.turn() == 1


def test_a_launcher_is_no_rank(site: Site) -> None:
    """It has the rank of its pod among pods, and makes no steps; a worker with the same rank goes before it."""
    site.report(rank=1, world=2, pid=7)
    for rank in (0, 1):
        site.report(rank=rank, world=4, steps=3)
    site.ask("all", None)
    site.serve(0, world=4, steps=3)
    site.report("waiting", "all:all", rank=1, world=2, pid=7)
    site.serve(1, world=4, steps=3)
    answer = site.ask("all", None)
    assert [(one["rank"], one["state"]) for one in answer["ranks"]] == [(0, "captured"), (1, "captured")]
    assert answer["world"] == 4


def test_no_process_of_any_rank(site: Site) -> None:
    site.ask("all", None)
    site.look()
    assert site.ask("all", None)["state"] == "waiting"
    site.look(requested.NO_AGENT_SECONDS)
    answer = site.ask("all", None)
    assert (answer["reason"], answer["ranks"]) == ("NoAgent", [])


def test_a_program_that_hangs_does_not_take_for_ever(site: Site) -> None:
    program(site, world=16, ranks=16)
    site.ask("all", None)
    for _ in range(200):
        site.look(10)
        program(site, world=16, ranks=16)
    answer = site.ask("all", None)
    reasons = [one["reason"] for one in answer["ranks"]]
    assert answer["reason"] == "NoSteps" and set(reasons) == {"NoSteps", "TimedOut"} and len(reasons) == 16


def test_a_rank_that_has_gone_is_told(site: Site) -> None:
    program(site, ranks=2)
    site.ask("all", None)
    site.look(state.SILENT_AFTER)
    site.serve(0, world=3, steps=5)
    site.look()
    assert [one["reason"] for one in site.ask("all", None)["ranks"]] == ["", "NoRank"]


def test_more_ranks_than_are_traced(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requested, "MAX_RANKS", 2)
    program(site)
    site.ask("all", None)
    site.serve(0, world=3, steps=5)
    site.serve(1, world=3, steps=5)
    assert [one["reason"] for one in site.ask("all", None)["ranks"]] == ["", "", "TooManyRanks"]


def test_ranks_without_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requested, "MAX_RANKS", 0)
    monkeypatch.setattr(requested, "MAX_PROCESSES", 4)
    program(site, world=6, ranks=6)
    site.ask("all", None)
    answer = site.ask("all", None)
    assert [(one["rank"], one["reason"]) for one in answer["ranks"]] == [(rank, "TooManyRanks") for rank in range(4)]


def test_the_ranks_share_the_room(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    program(site)
    site.ask("all", None)
    site.serve(0, world=3, steps=5)
    monkeypatch.setattr(volume, "MAX_KEPT_BYTES", 2 * len(gzip.compress(TRACE)) - 10)
    site.serve(1, world=3, steps=5)
    site.serve(2, world=3, steps=5)
    answer = site.ask("all", None)
    assert [one["reason"] for one in answer["ranks"]] == ["", "TooLarge", "TooLarge"]
    assert "together with those of the pod's other ranks" in answer["ranks"][1]["message"]


def test_a_full_volume_is_said_of_each_rank(site: Site) -> None:
    program(site, world=2, ranks=2)
    site.ask("all", None)
    (site.kept / "copy.tmp").symlink_to("/dev/full")
    site.serve(0, world=2, steps=5)
    site.serve(1, world=2, steps=5)
    assert [one["reason"] for one in site.ask("all", None)["ranks"]] == ["NoSpace", ""], "the link has gone with it"


@pytest.mark.parametrize("rank", [0, None])
def test_a_volume_without_room_for_the_answer(site: Site, rank: int | None) -> None:
    """Of a file that nobody finds there is none."""
    program(site, world=1, ranks=1)
    site.ask("all", rank)
    (site.kept / "newest.new").symlink_to("/dev/full")
    site.write()
    site.report("written", "all" if rank == 0 else "all:all", steps=5)
    if rank is None:
        site.look()
        (site.kept / "newest.new").symlink_to("/dev/full")
    site.look()
    answer = site.ask("all", rank)
    assert (answer["state"], answer["reason"], site.files()) == ("failed", "NoSpace", [])
    assert site.send("all")[0] == 1


def test_commands_that_can_not_be_left(site: Site) -> None:
    program(site, world=2, ranks=2)
    (site.shared / "commands").rmdir()
    answer = site.ask("all", None)
    assert (answer["state"], [one["reason"] for one in answer["ranks"]]) == ("failed", ["NoSpace", "NoSpace"])


def test_a_restart_goes_on_with_the_ranks_that_had_no_turn(site: Site) -> None:
    program(site)
    site.ask("all", None)
    site.serve(0, world=3, steps=5)
    site.serve(1, "CaptureFailed", world=3, steps=5)
    site.requested, site.state = Requested(site.shared, site.kept, site.now), State(10.0, 1)
    site.look()
    assert site.ask("all", None)["state"] == "capturing", "it is not begun anew"
    site.look()
    assert site.ask("all", None)["state"] == "capturing", "nobody has been heard of so far"
    program(site)
    site.look()
    assert site.turn() == 2
    site.serve(2, world=3, steps=5)
    site.look(requested.HEARD_SECONDS)
    answer = site.ask("all", None)
    assert [(one["rank"], one["reason"]) for one in answer["ranks"]] == [(0, ""), (1, "CaptureFailed"), (2, "")]
    assert answer["state"] == contract.TRACE_CAPTURED and len(site.files()) == 2


def test_a_restart_without_the_program(site: Site) -> None:
    """What there is stays, and nobody is waited for in vain."""
    program(site)
    site.ask("all", None)
    site.serve(0, world=3, steps=5)
    site.requested, site.state = Requested(site.shared, site.kept, site.now), State(10.0, 1)
    site.ask("all", None)
    site.look(requested.HEARD_SECONDS)
    answer = site.ask("all", None)
    assert (answer["state"], len(answer["ranks"])) == (contract.TRACE_CAPTURED, 1)


def test_the_next_request_takes_the_place_of_the_last(site: Site) -> None:
    program(site)
    site.ask("all", None)
    for rank in range(3):
        site.serve(rank, world=3, steps=5)
    before = site.files()
    site.ask("one", 0)
    assert site.files() == before and site.send("all")[0] == 0, "they are there until the new one is"
    site.write()
    site.report("written", world=3, steps=5)
    site.look()
    assert len(site.files()) == 1 and site.files()[0] not in before
    assert site.send("all")[0] == 1 and site.send("one")[0] == 0
