"""How ranks compare: who holds up the others, in a few numbers however many there are."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.trace import (
    MAX_FAILURES,
    Trace,
    TraceOperation,
    TracePart,
    TraceRanks,
    TraceReason,
    TraceState,
    TraceSummary,
)
from rightpool.planning.jobs.trace_answer import PodTrace, RankTrace, TraceAnswer
from rightpool.planning.moves.trace_ranks import digest_of_all, failure, never_waiting, with_ranks

KNOWN = TraceAnswer("now", None, TraceState.CAPTURING)


def rank(number: int, waiting: float, *, launch: float | None = None) -> RankTrace:
    parts = [TracePart("Compute", 1.0 - waiting - (launch or 0.0)), TracePart("ExposedCommunication", waiting)]
    if launch is not None:
        parts.append(TracePart("Launch", launch))
    operations = (TraceOperation("gemm", 1, 0.5),)
    summary = TraceSummary("Device", 1.0, 4, tuple(parts), operations=operations)
    return RankTrace(number, size_bytes=10, sha256=f"{number:064x}", summary=summary)


def pod(*ranks: RankTrace, world: int | None = None) -> PodTrace:
    return PodTrace("now", None, TraceState.CAPTURED, world=world, ranks=ranks)


def ranks_of(answer: TraceAnswer) -> TraceRanks:
    assert answer.ranks is not None
    return answer.ranks


@pytest.mark.parametrize(
    ("waiting", "slow"),
    [
        ({}, None),
        ({0: 0.0}, None),
        ({0: 0.5, 1: 0.02}, 1),
        ({0: 0.45, 1: 0.4, 2: 0.01, 3: 0.5}, 2),
        ({0: 0.1, 1: 0.02}, None),
        ({0: 0.5, 1: 0.4, 2: 0.45}, None),
        ({0: 0.0, 1: 0.0}, None),
    ],
)
def test_the_rank_that_never_waits(waiting: dict[int, float], slow: int | None) -> None:
    assert never_waiting(waiting, {}) == slow


def test_ranks_that_all_wait_for_data_take_turns_in_being_late() -> None:
    waiting = {0: 0.5, 1: 0.02}
    assert never_waiting(waiting, {0: 0.3, 1: 0.4}) is None
    assert never_waiting(waiting, {0: 0.0, 1: 0.3}) == 1, "the loader of one rank holds up the other"


def test_the_spread_and_the_rank_that_is_shown() -> None:
    answer = with_ranks(
        KNOWN, {"b": pod(rank(2, 0.5), rank(3, 0.1, launch=0.2)), "a": pod(rank(0, 0.6), rank(1, 0.7))}, {}
    )
    found = ranks_of(answer)
    spread = {one.part: (one.least, one.least_rank, one.median, one.most, one.most_rank) for one in found.parts}
    assert spread["ExposedCommunication"] == (0.1, 3, pytest.approx(0.55), 0.7, 1)
    assert spread["Launch"] == (0.2, 3, 0.2, 0.2, 3), "of the ranks that have it"
    assert (found.straggler, found.shown, answer.pod, found.program) == (3, 3, "b", None)
    assert answer.state is KNOWN.state
    even = with_ranks(KNOWN, {"b": pod(rank(2, 0.5), world=4), "a": pod(rank(0, 0.5), world=4)}, {})
    assert (ranks_of(even).straggler, ranks_of(even).shown, even.pod, ranks_of(even).program) == (None, 0, "a", 4)


def test_nothing_was_captured() -> None:
    dead = PodTrace("now", None, TraceState.FAILED, TraceReason.NO_AGENT, "nobody")
    answer = with_ranks(KNOWN, {"a": dead}, {"b": failure("b", TraceReason.POD_GONE, "x" * 1000)})
    assert answer.summary is answer.pod is answer.sha256 is None
    found = ranks_of(answer)
    assert (found.captured, found.failed, found.shown, found.parts) == (0, 2, None, ())
    assert [(one.pod, len(one.message)) for one in found.failures] == [("a", 6), ("b", 200)]


def test_the_digest_of_all_is_of_what_the_sidecars_keep() -> None:
    answer = with_ranks(KNOWN, {"b": pod(rank(2, 0.5)), "a": pod(rank(10, 0.5))}, {})
    lines = f"2 {2:064x}\n10 {10:064x}\n"
    assert (
        answer.sha256
        == hashlib.sha256(lines.encode()).hexdigest()
        == digest_of_all([(10, f"{10:064x}"), (2, f"{2:064x}")])
    )


def test_files_of_many_ranks_are_larger_than_a_count() -> None:
    large = [replace(rank(at, 0.5), size_bytes=256 << 20) for at in range(16)]
    answer = with_ranks(KNOWN, {"a": pod(*large)}, {})
    trace = Trace("now", TraceState.CAPTURED, 1.8e9, size_bytes=answer.size_bytes, ranks=answer.ranks)
    assert Trace.from_dict(trace.to_dict()).size_bytes == 4 << 30


def test_the_status_does_not_grow_with_the_ranks() -> None:
    def size(ranks: int) -> int:
        good = {
            f"pod-{at}": pod(*(rank(8 * at + one, 0.5) for one in range(8)), world=ranks) for at in range(ranks // 8)
        }
        bad = {f"bad-{at}": failure(f"bad-{at}", TraceReason.TIMED_OUT, "y" * 300) for at in range(ranks)}
        answer = with_ranks(KNOWN, good, bad)
        found = ranks_of(answer)
        assert (found.captured, found.failed, len(found.failures)) == (ranks, ranks, MAX_FAILURES)
        return len(str(Trace("now", TraceState.CAPTURED, 1.8e9, summary=answer.summary, ranks=found).to_dict()))

    assert size(2048) - size(16) < 100 and size(2048) < 6000


@given(st.dictionaries(st.integers(0, 20), st.floats(0, 1), max_size=12), st.floats(0, 1))
def test_whoever_is_named_waits_least(waiting: dict[int, float], loading: float) -> None:
    slow = never_waiting(waiting, dict.fromkeys(waiting, loading))
    if slow is not None:
        assert waiting[slow] == min(waiting.values()) and loading < 0.5 and len(waiting) > 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_the_spread_holds_all_ranks(shares: list[float]) -> None:
    found = ranks_of(with_ranks(KNOWN, {"a": pod(*(rank(at, share) for at, share in enumerate(shares)))}, {}))
    (waiting,) = (one for one in found.parts if one.part == "ExposedCommunication")
    assert waiting.least == min(shares) == shares[waiting.least_rank]
    assert waiting.most == max(shares) == shares[waiting.most_rank]
    assert waiting.least <= waiting.median <= waiting.most
