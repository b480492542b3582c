"""Steps and samples of programs whose optimizer is none of PyTorch's: what backward passes and the loader show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from rightpool_agent import torch_loader  # type: ignore[import-not-found]  # noqa: E402
from rightpool_agent.torch_passes import ENOUGH, Passes  # type: ignore[import-not-found]  # noqa: E402


class Loader:
    """Hands out batches, as the wrapped iterator of a DataLoader tells it."""

    def __init__(self) -> None:
        self.record = torch_loader.Drawn(object())

    def hand_out(self, rows: int | None) -> None:
        self.record.pending.append(rows)
        self.record.fresh += 1
        torch_loader.current, torch_loader.used = self.record, True


@pytest.fixture(autouse=True)
def loader() -> Iterator[Loader]:
    torch_loader.forget()
    yield Loader()
    torch_loader.forget()
    torch_loader.used = False


def train(
    passes: Passes, loader: Loader | None, rows: list[int | None], *, every: int = 1, changes: bool = True
) -> Any:
    """A pass for each batch, and a change of the parameter after each `every`."""
    weight = torch.nn.Parameter(torch.ones(3))
    for number, count in enumerate(rows, 1):
        if loader is not None:
            loader.hand_out(count)
        passes.begins(weight.sum(), 0)
        if changes and number % every == 0:
            with torch.no_grad():
                weight.add_(1.0)
    return weight


def test_each_change_is_a_step_with_the_rows_that_were_drawn_for_it(loader: Loader) -> None:
    passes = Passes()
    weight = train(passes, loader, [8, 8, 8, 3])
    assert len(passes.take(final=True, hooked=False, optimizers=0)) == 4
    assert passes.samples == 27
    assert weight is not None


def test_gradients_of_several_passes_are_one_step(loader: Loader) -> None:
    passes = Passes()
    weight = train(passes, loader, [8] * 12, every=3)
    assert len(passes.take(final=True, hooked=False, optimizers=0)) == 4
    assert (passes.samples, weight.dim()) == (96, 1)


@pytest.mark.parametrize("rows", [[8, None, 8, 8], [8, 8, None, 8]])
def test_samples_are_absent_where_a_batch_can_not_be_read(loader: Loader, rows: list[int | None]) -> None:
    passes = Passes()
    weight = train(passes, loader, rows)
    assert len(passes.take(final=True, hooked=False, optimizers=0)) == 4
    assert (passes.samples, weight.dim()) == (None, 1)


def test_samples_are_absent_where_a_step_draws_no_batch(loader: Loader) -> None:
    """As several steps with one batch."""
    passes = Passes()
    weight = torch.nn.Parameter(torch.ones(3))
    for number in range(8):
        if number % 2 == 0:
            loader.hand_out(4)
        passes.begins(weight.sum(), 0)
        with torch.no_grad():
            weight.add_(1.0)
    assert len(passes.take(final=True, hooked=False, optimizers=0)) == 8
    assert passes.samples is None


def test_the_batches_of_pytorchs_own_optimizer_are_left_to_its_steps(loader: Loader) -> None:
    passes = Passes()
    loader.hand_out(8)
    passes.begins(torch.nn.Parameter(torch.ones(3)).sum(), 1)
    assert list(loader.record.pending) == [8] and torch_loader.used


@pytest.mark.parametrize("changes", [True, False])
def test_a_long_program_is_counted_on_and_keeps_no_moment_that_was_taken(changes: bool) -> None:
    passes, taken, weight = Passes(), 0, torch.nn.Parameter(torch.ones(3))
    for _ in range(4):
        for _ in range(1500):
            passes.begins(weight.sum(), 0)
            if changes:
                with torch.no_grad():
                    weight.add_(1.0)
        taken += len(passes.take(final=False, hooked=False, optimizers=0))
        assert not passes._moments and not passes._changed
    taken += len(passes.take(final=True, hooked=False, optimizers=0))
    assert taken == 6000


def test_a_few_passes_before_an_optimizer_are_no_steps() -> None:
    passes = Passes()
    weight = train(passes, None, [None] * ENOUGH, changes=False)
    assert passes.take(final=False, hooked=False, optimizers=1) == []
    assert (passes.take(final=True, hooked=True, optimizers=1), weight.dim()) == ([], 1)


def test_the_first_step_of_an_optimizer_that_is_made_after_its_gradients_has_their_batch(loader: Loader) -> None:
    passes = Passes()
    weight = train(passes, loader, [8], changes=False)
    assert passes.handed_over() == (True, 8)
    train(passes, loader, [8], changes=False)
    assert passes.handed_over() == (True, None)  # one of them may have been made to look at the gradients
    passes.begins(weight.sum(), 1)
    assert passes.handed_over() == (False, 0)  # the step is made with a later pass


def test_batches_of_many_passes_before_an_optimizer_may_be_those_of_its_first_step(loader: Loader) -> None:
    passes = Passes()
    weight = train(passes, loader, [8] * 20, changes=False)
    assert len(passes.take(final=False, hooked=False, optimizers=0)) == 20
    assert passes.handed_over() == (True, None)
    passes.begins(weight.sum(), 1)
    assert passes.handed_over() == (False, 0)
