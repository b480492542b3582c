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
