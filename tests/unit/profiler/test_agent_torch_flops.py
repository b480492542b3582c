"""FLOPs of a PyTorch step by its graph, compared with PyTorch's own counter, and nothing where they can't be told."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from rightpool_agent import torch_flops  # type: ignore[import-not-found]  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

nn = torch.nn


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    torch_flops.forget()
    yield
    torch_flops.forget()


def read(loss: Any, **kwargs: Any) -> float | None:
    """What one step with this backward pass has."""
    torch_flops.forget()
    torch_flops.look((loss,), kwargs)
    found: float | None = torch_flops._present
    return found


def compare(loss: Callable[[], Any]) -> None:
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        loss().backward()
    expected = counter.get_total_flops()
    assert expected > 0
    with sdpa_kernel(SDPBackend.MATH):
        assert read(loss()) == expected


def frozen(model: Any, part: Any) -> Any:
    part.requires_grad_(False)
    return model


def embedded() -> Callable[[], Any]:
    table, head = nn.Embedding(20, 16), nn.Linear(16, 20, bias=False)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    tokens = torch.randint(0, 20, (3, 7))
    return lambda: nn.functional.cross_entropy(head(layer(table(tokens))).flatten(0, 1), tokens.flatten())


def over(model: Any, *shape: int) -> Callable[[], Any]:
    batch = torch.randn(*shape)
    return lambda: model(batch).square().mean()


def adapted() -> Callable[[], Any]:
    base, down, up = nn.Linear(8, 6), nn.Linear(8, 2, bias=False), nn.Linear(2, 6, bias=False)
    base.requires_grad_(False)
    batch = torch.randn(5, 8)
    return lambda: (base(batch) + up(down(batch))).sum()


CASES = {
    "layers": lambda: over(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)), 5, 8),
    "three dimensions": lambda: over(nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)), 2, 5, 8),
    "last frozen": lambda: over(frozen(model := nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4)), model[1]), 5, 8),
    "convolutions": lambda: over(
        nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.LazyLinear(5),
        ),
        2,
        3,
        16,
        16,
    ),
    "one dimension": lambda: over(nn.Sequential(nn.Conv1d(3, 4, 5, dilation=2), nn.Tanh()), 2, 3, 30),
    "transposed": lambda: over(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 3, 3, stride=2)), 2, 3, 8, 8),
    "transformer": embedded,
}


@pytest.mark.parametrize("case", CASES)
def test_flops_are_those_of_the_counter(case: str) -> None:
    compare(CASES[case]())


@given(st.lists(st.integers(1, 9), min_size=3, max_size=6), st.integers(1, 9), st.booleans())
def test_flops_of_any_layers(widths: list[int], rows: int, bias: bool) -> None:
    layers = [nn.Linear(one, other, bias=bias) for one, other in itertools.pairwise(widths)]
    compare(over(nn.Sequential(*layers), rows, widths[0]))


def test_a_product_whose_result_needs_no_gradient_is_not_in_the_graph() -> None:
    """The frozen base of an adapter beside it: PyTorch's counter has it once more."""
    loss = adapted()
    with FlopCounterMode(display=False) as counter:
        loss().backward()
    base = 2 * 5 * 8 * 6
    assert read(loss()) == counter.get_total_flops() - base


def test_a_convolution_in_groups() -> None:
    """PyTorch's counter takes the gradient of its weight for that of one without groups."""
    model = nn.Conv2d(8, 8, 3, groups=4)
    forward = 2.0 * 2 * 6 * 6 * model.weight.numel()
    assert read(over(model, 2, 8, 8, 8)()) == 2 * forward


def test_attention_as_one_operation_has_the_products_that_it_is_made_of() -> None:
    query, key, value = (torch.randn(2, 4, n, 8, requires_grad=True) for n in (6, 9, 9))

    def loss() -> Any:
        return nn.functional.scaled_dot_product_attention(query, key, value).sum()

    with sdpa_kernel(SDPBackend.MATH):
        apart = read(loss())
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        graph = loss()
    assert "ScaledDotProduct" in graph.grad_fn.next_functions[0][0].name()
    assert read(graph) == apart == 3 * 2 * 2 * 4 * 6 * 9 * 16


class _Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Any) -> Any:
        return value * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:  # type: ignore[override]
        return grad * 2


class Mul(_Own):
    """Its node has nearly the name of one of PyTorch's."""


@pytest.mark.parametrize(
    "loss",
    [
        lambda: nn.LSTM(4, 5)(torch.randn(3, 2, 4))[0].sum(),
        lambda: _Own.apply(nn.Linear(4, 2)(torch.randn(3, 4))).sum(),
        lambda: Mul.apply(nn.Linear(4, 2)(torch.randn(3, 4))).sum(),
        lambda: torch.linalg.solve(nn.Linear(4, 4)(torch.randn(4, 4)), torch.ones(4)).sum(),
        lambda: None,
    ],
    ids=["recurrent", "own", "own by a known name", "solver", "no tensor"],
)
def test_what_is_not_known_has_none(loss: Callable[[], Any]) -> None:
    assert read(loss()) is None


@pytest.mark.parametrize("how", ["retain_graph", "create_graph", "inputs"])
def test_a_graph_that_may_be_passed_again_has_none(how: str) -> None:
    loss = over(nn.Linear(8, 4), 5, 8)
    assert read(loss()) is not None
    assert read(loss(), **{how: [object()]}) is None


def steps(number: int, loss: Callable[[int], Any], passes: int = 1) -> float | None:
    """Trains as torch_steps tells of it."""
    for step in range(number):
        for _ in range(passes):
            graph = loss(step)
            if torch_flops.looking:
                torch_flops.look((graph,), {})
        torch_flops.count += 1
        if torch_flops.count >= torch_flops.due:
            torch_flops.turn()
    found: float | None = torch_flops.known()
    return found


def test_passes_of_a_step_add_up() -> None:
    loss = over(nn.Linear(8, 4), 5, 8)
    once = read(loss())
    torch_flops.forget()
    assert once and steps(20, lambda _: loss(), passes=3) == 3 * once


def test_one_reading_does_not_suffice() -> None:
    loss = over(nn.Linear(8, 4), 5, 8)
    assert steps(6, lambda _: loss()) is None


def test_a_smaller_last_batch_now_and_then_does_no_harm() -> None:
    model = nn.Linear(8, 4)
    full, rest = over(model, 6, 8), over(model, 2, 8)
    read_at = {16}  # the third reading of the five
    assert steps(70, lambda step: rest() if step in read_at else full()) == read(full())


def test_batches_of_many_lengths_have_none() -> None:
    model = nn.Linear(8, 4)
    assert steps(70, lambda step: over(model, 1 + step, 8)()) is None


def test_few_steps_are_read() -> None:
    read_at = []
    loss = over(nn.Linear(8, 4), 5, 8)

    def noting(step: int) -> Any:
        if torch_flops.looking:
            read_at.append(step)
        return loss()

    steps(1000, noting)
    assert read_at == [4, 10, 22, 46, 94, 190, 382, 766]
