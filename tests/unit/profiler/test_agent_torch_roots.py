"""What is known of the modules that optimizers train."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from rightpool_agent import torch_roots  # type: ignore[import-not-found]  # noqa: E402


def test_a_forked_child_knows_no_calls_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither their rows nor their number: the child's samples were absent, as some calls seemed to be lost."""
    root = torch_roots.Root(torch.nn.Linear(4, 1))
    monkeypatch.setattr(torch_roots, "_watched", {1: root})
    for _ in range(3):
        root.called((torch.ones(6, 4),), {})
    torch_roots.forget()
    root.called((torch.ones(5, 4),), {})
    assert (root.total, [rows for rows, _ in root.calls]) == (1, [5])


def test_a_module_that_is_gone_contains_nothing() -> None:
    """Another one may get its id, and calls of that were taken for those of the one that was."""
    inner = torch.nn.Linear(4, 1)
    around = torch.nn.Sequential(torch.nn.Sequential(inner))
    torch_roots.watch([inner.weight])
    assert [root.module() for root in torch_roots.roots([inner.weight])] == [inner, around[0], around]
    del around
    assert [root.module() for root in torch_roots.roots([inner.weight])] == [inner]


def test_parts_are_those_of_all_groups() -> None:
    model = torch.nn.ModuleDict({name: torch.nn.Linear(4, 1) for name in ("encoder", "actor", "critic")})
    groups = [[*model["encoder"].parameters(), *model["actor"].parameters()], [*model["critic"].parameters()]]
    for group in groups:
        torch_roots.watch(group)
    assert {root.module() for root in torch_roots.parts(list(model.parameters()))} == {*model.values()}
    assert torch_roots.parts(groups[1]) == []  # the critic is called itself


def test_parts_are_not_known_where_one_of_them_can_not_be_watched() -> None:
    """The class of a scripted module has a `__call__` that is not Python's."""
    scripted = type("ScriptModule", (torch.nn.Linear,), {})
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(4, 1), "b": scripted(4, 1)})
    torch_roots.watch(list(model.parameters()))
    assert torch_roots.parts(list(model.parameters())) == []


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (((6, 4),), 6),
        (((6, 4), (6,)), 6),
        (((4,),), None),  # one row, and no batch
        (((4,), (4,)), None),
    ],
)
def test_arrays_of_one_dimension_alone_tell_no_rows(arguments: tuple[tuple[int, ...], ...], rows: int | None) -> None:
    root = torch_roots.Root(torch.nn.Linear(4, 1))
    root.called(tuple(torch.ones(shape) for shape in arguments), {})
    assert [found for found, _ in root.calls] == [rows]
