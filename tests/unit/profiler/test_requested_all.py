"""Traces of all ranks, in the sidecar: their turns, what fails for one of them, restarts, and bounds."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from rightpool import contract
from rightpool_profiler import state
from rightpool_profiler.state import State
from rightpool_profiler.traces import kept as volume
from rightpool_profiler.traces import requested
from rightpool_profiler.traces.requested import Requested

from .traced_pod import TRACE, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


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
