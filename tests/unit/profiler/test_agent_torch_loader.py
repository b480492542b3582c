"""How many batches of a data loader a step was made with."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from rightpool_agent import torch_loader  # type: ignore[import-not-found]  # noqa: E402

ONCE, TWICE, ADDED = (1, 1, 1), (2, 1, 1), (2, 1, 2)  # forward and backward passes of a step, batches handed out for it


@pytest.mark.parametrize(
    ("steps", "batches"),
    [
        ([ONCE, ONCE, ONCE], [1, 1, 1]),
        ([TWICE, TWICE, TWICE], [1, 1, 1]),  # each batch is read twice
        ([(2, 1, 2), TWICE, TWICE], [1, 1, 1]),  # and one is fetched in advance
        ([ADDED, ADDED, ADDED], [1, 3, 2]),  # the losses of two batches are added up
        ([(8, 4, 4), (8, 4, 4)], [4, 4]),  # four passes a step, each batch is read twice
        ([(3, 0, 1), (3, 0, 1)], [3, 3]),  # no backward pass is seen
    ],
)
def test_a_batch_that_is_read_twice_counts_once(steps: list[tuple[int, int, int]], batches: list[int]) -> None:
    record, found = torch_loader.Drawn(object()), []
    for record.uses, record.passes, record.fresh in steps:
        found.append(record.used())
    assert found == batches


@pytest.mark.parametrize(
    ("steps", "samples"), [(4, 80), (8, 80)], ids=["losses of two are added", "each is read twice"]
)
def test_all_count_of_several_that_are_fetched_at_once(steps: int, samples: int) -> None:
    """A program takes eight batches, and makes steps of them."""
    _, record = met(0)
    total = 0
    for _ in range(3):
        record.pending.extend([10] * 8)
        for step in range(steps):
            record.uses, record.passes, record.fresh = 2, 1, 0 if step else 8
            total += record.take(record.used())
    assert total == 3 * samples


def test_all_batches_count_where_a_loader_has_no_more() -> None:
    """One step for a whole epoch: there is no second one to tell by."""
    record = torch_loader.Drawn(object())
    record.uses, record.passes, record.fresh, record.over = 7, 1, 7, True
    assert record.used() == 7


def test_all_batches_count_where_the_loader_is_no_more() -> None:
    """A function has drawn them and returned their loss."""
    key, record = met(2)
    torch_loader._leave(key)
    record.uses, record.passes, record.fresh = 2, 1, 2
    assert record.used() == 2


@pytest.mark.parametrize(
    ("steps", "handed_out", "unknown"),
    [
        ([ADDED], 2, True),  # two batches, or one that was read twice and one that was fetched in advance?
        ([TWICE], 1, False),
        ([ADDED, ADDED], 4, False),
        ([(2, 1, 2), TWICE], 3, False),
        ([(2, 1, 1), ONCE], 3, False),
    ],
)
def test_of_an_iterator_with_one_step_it_may_stay_unknown(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[int, int, int]], handed_out: int, unknown: bool
) -> None:
    monkeypatch.setattr(torch_loader, "undecided", False)
    key, record = met(handed_out)
    for record.uses, record.passes, record.fresh in steps:
        record.take(record.used())
    record.passes = 0
    torch_loader._leave(key)
    assert torch_loader.undecided is unknown


@pytest.mark.parametrize(
    ("handed_out", "steps", "many"),
    [
        ([4] * 3, 3, True),  # four are put together, or three are thrown away
        ([2] * 5, 5, True),
        ([3, 1, 1, 1], 4, False),  # two are fetched in advance
        ([1] * 7, 7, False),
        ([9], 0, False),  # a program looks at some, and trains with those of another iterator
    ],
)
def test_more_batches_than_steps_are_noticed_when_the_iterator_is_no_more(
    monkeypatch: pytest.MonkeyPatch, handed_out: list[int], steps: int, many: bool
) -> None:
    monkeypatch.setattr(torch_loader, "left_over", False)
    key, record = met(0)
    make(record, handed_out, steps)
    assert not torch_loader.too_many()
    torch_loader._leave(key)
    assert torch_loader.too_many() is many


@pytest.mark.parametrize("steps", [16, 5000])
def test_more_batches_than_steps_are_noticed_while_an_iterator_goes_on(steps: int) -> None:
    key, record = met(0)
    try:
        make(record, [2] * steps, steps)
        assert torch_loader.too_many()
        record.pending.clear()
        assert not torch_loader.too_many()
    finally:
        torch_loader._iterators.pop(key)


def make(record: torch_loader.Drawn, handed_out: list[int], steps: int) -> None:
    """Steps of one forward and one backward pass each, before which so many batches are handed out."""
    for number, batches in enumerate(handed_out):
        record.pending.extend([10] * batches)
        if number < steps:
            record.uses, record.passes, record.fresh = 1, 1, batches
            record.take(record.used())


def met(batches: int) -> tuple[int, torch_loader.Drawn]:
    """An iterator that has handed out so many."""
    key, record = -1, torch_loader.Drawn(object())
    record.pending.extend([10] * batches)
    torch_loader._iterators[key] = record
    return key, record
