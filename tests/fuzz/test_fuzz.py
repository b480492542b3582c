"""A short run of every target, and tests that targets detect faults."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightpool.telemetry import exposition as reader
from rightpool_profiler import exposition, report
from rightpool_profiler.receiver import Receiver
from rightpool_profiler.server import Server
from rightpool_profiler.state import State
from tests.fuzz import TARGETS, datagrams
from tests.fuzz.datagrams import Datagrams
from tests.fuzz.mutation import ODD, broken, damaged, encoded
from tests.fuzz.requests import Requests
from tests.fuzz.target import Finding, Outcome, Target, run

INPUTS: Final = int(os.environ.get("RIGHTPOOL_FUZZ_INPUTS", "4000"))


def _by_itself(target: Callable[[], Target], inputs: int) -> Outcome:
    """In a process of its own: what earlier tests have left says nothing of how the memory of this one grows."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(run, target, inputs, 7).result()


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name: str) -> None:
    outcome = _by_itself(TARGETS[name], INPUTS)
    assert outcome.taken > INPUTS / 100, outcome


def test_a_wrong_value_that_is_taken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_MAX_NUMBER", 1e30)
    with pytest.raises(Finding):
        run(Datagrams, 5000, seed=7)


def test_a_crash_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> int:
        raise OverflowError

    monkeypatch.setattr(report, "_whole", crash)
    with pytest.raises(OverflowError) as found:
        run(Datagrams, 5000, seed=7)
    assert "datagrams, seed 7, input " in found.value.__notes__[0]


class _Growing(Datagrams):
    kept: ClassVar[list[bytes]] = []

    def feed(self, random: Random) -> bool:
        self.kept.append(random.randbytes(4_000))
        return super().feed(random)


def test_growth_is_found() -> None:
    with pytest.raises(Finding, match="memory grows"):
        _by_itself(_Growing, 5000)


def test_a_checkpoint_without_the_token_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "_authorize", lambda *_: None)
    with pytest.raises(Finding, match="a checkpoint for"):
        run(Requests, 5000, seed=7)


def test_an_input_has_a_name() -> None:
    """Seed and number reproduce an input, independent of earlier ones."""

    def input_of(seed: int) -> bytes:
        random = Random(seed)
        return damaged(encoded(broken(datagrams.report(random, 1000.0), random, 3)), random, 3)

    first = [input_of(seed) for seed in range(2000)]
    assert [input_of(seed) for seed in reversed(range(2000))] == first[::-1]
    assert len(set(first)) > 1900


_json = st.recursive(
    st.sampled_from(ODD) | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_fields = st.sampled_from([*datagrams.report(Random(1), 1000.0), "samples", "chips", "command", "platform", "saved"])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(_fields, _json, max_size=3), min_size=1, max_size=5))
def test_whatever_is_taken_is_shown_as_a_page_that_can_be_read(changes: list[dict[str, Any]]) -> None:
    """By Hypothesis, which finds the smallest failing input."""
    state = State(10.0, 4)
    receiver = Receiver(Path("unbound"), state)
    for number, change in enumerate(changes):
        receiver.take(encoded({**datagrams.report(Random(1), 1000.0 + number), **change}), 1000.0 + number, 1.9e9)
    assert state.taken + state.refused == len(changes)
    reader.parse(exposition.render(*state.exposition(1000.0 + len(changes))))
