"""What batches take by load is remembered by place, and the newest windows count most."""

from __future__ import annotations

import pytest

from rightpool.profiles.demand import DemandRecord
from rightpool.profiles.loads import PLACES, Loads, batch_of
from rightpool.profiles.served import RequestCounter, ServedWindow, ServerCounts

NOW = 20_000 * 86_400.0


def window(**counters: float) -> ServedWindow:
    counts = {RequestCounter(name): value for name, value in counters.items()}
    return ServedWindow(NOW, 15.0, ServerCounts(counts, {}, {}), 2, True)


def batches(load: float, seconds: float, requests: float = 100.0) -> ServedWindow:
    """A window of batches with so many requests each."""
    count = requests / load
    return window(requests=requests, batched=requests, batches=count, batchSeconds=count * seconds, timedBatches=count)


def test_each_load_has_its_seconds() -> None:
    loads = Loads()
    for load, seconds in ((1.0, 0.010), (4.0, 0.016), (8.0, 0.024), (4.0, 0.018)):
        loads.extend(batches(load, seconds), "a100/1", "h")
    points = loads.at("a100/1")
    assert points is not None
    assert points.load.tolist() == pytest.approx([1.0, 4.0, 8.0])
    assert points.seconds.tolist() == pytest.approx([0.010, 0.017, 0.024])
    assert points.weight.tolist() == [1.0, 2.0, 1.0]
    assert loads.at("l4/1") is None


def test_what_is_new_counts_most() -> None:
    loads = Loads()
    for seconds in (0.010,) * 500 + (0.020,) * 100:
        loads.extend(batches(2.0, seconds), "a100/1", "h")
    points = loads.at("a100/1")
    assert points is not None
    assert points.seconds[0] == pytest.approx(0.020, rel=0.01)
    assert points.weight[0] == 20.0


def test_another_program_leaves_a_hint() -> None:
    loads = Loads()
    for _ in range(50):
        loads.extend(batches(2.0, 0.010), "a100/1", "h")
        loads.extend(batches(8.0, 0.030), "a100/1", "h")
    loads.extend(batches(2.0, 0.020), "a100/1", "edited")
    points = loads.at("a100/1")
    assert points is not None
    assert points.weight.tolist() == pytest.approx([2.0, 1.0])
    assert points.seconds.tolist() == pytest.approx([0.015, 0.030])


def test_a_few_places_are_remembered() -> None:
    loads = Loads()
    for index in range(PLACES + 2):
        loads.extend(batches(2.0, 0.010), f"pool-{index}/1", "h")
    assert [index for index in range(PLACES + 2) if loads.at(f"pool-{index}/1") is not None] == [2, 3, 4, 5]


def test_a_server_without_batches_takes_what_a_request_does_without_its_wait() -> None:
    assert batch_of(window(requests=10, seconds=2.0, timed=10)) == (1.0, pytest.approx(0.2))
    waits = window(requests=10, seconds=2.0, timed=10, queueSeconds=1.5, queued=10)
    assert batch_of(waits) == (1.0, pytest.approx(0.05))
    assert batch_of(window(requests=10)) == (1.0, None)
    tokens = window(requests=10, seconds=2.0, timed=10, tokensOut=900)
    assert batch_of(tokens) == (1.0, None), "its requests share a batch as long as they last"


def test_a_window_without_requests_says_nothing() -> None:
    loads = Loads()
    loads.extend(window(requests=0.0), "a100/1", "h")
    loads.extend(window(requests=9.0), "a100/1", "h")
    assert not loads.known


def test_it_is_stored_with_the_record() -> None:
    record = DemandRecord()
    record.loads.extend(batches(4.0, 0.016), "a100/1", "h")
    again = DemandRecord.read(record.stored()).loads
    before, after = record.loads.at("a100/1"), again.at("a100/1")
    assert before is not None and after is not None
    assert [column.tolist() for column in before[:3]] == [column.tolist() for column in after[:3]]
    assert again.stored() == record.loads.stored()


@pytest.mark.parametrize(
    "stored",
    [
        b"{",
        b"[]",
        b'{"a/1": 3}',
        b'{"a/1": ["h", [1, 2]]}',
        b'{"a/1": ["h", [0, 1, 1]]}',
        b'{"a/1": ["h", ["x", 1, 1]]}',
    ],
    ids=["broken", "a list", "a number", "two numbers", "no load", "a word"],
)
def test_what_can_not_be_read_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Loads.read(stored)
