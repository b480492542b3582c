"""Steps that are replayed as a CUDA graph. A real one needs a GPU (tests/gpu); the methods of this one do nothing."""

import gc
import traceback
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from rightpool_agent import torch_graphs  # type: ignore[import-not-found]


class Optimizer:
    def __init__(self, after_step: Callable[["Optimizer"], None]) -> None:
        self.step = lambda: after_step(self)


class Program:
    """The calls of PyTorch, and the steps that are counted."""

    def __init__(self) -> None:
        self.capturing = False
        program = self

        class CUDAGraph:
            broken = False

            def capture_begin(self, pool: object = None) -> None:
                program.capturing = True

            def replay(self) -> None:
                if self.broken:
                    raise RuntimeError("CUDA error")

        self.new_graph = CUDAGraph
        self.steps: list[Optimizer] = []
        module = SimpleNamespace(CUDAGraph=CUDAGraph, is_current_stream_capturing=lambda: self.capturing)
        torch_graphs.install(module, self.steps.append)

    def optimizer(self) -> Optimizer:
        return Optimizer(self._after_step)

    def _after_step(self, optimizer: Optimizer) -> None:
        if not (torch_graphs.newest is not None and torch_graphs.captures(optimizer)):
            self.steps.append(optimizer)

    def capture(self, *optimizers: Optimizer) -> object:
        graph = self.new_graph()
        graph.capture_begin(pool=None)
        for optimizer in optimizers:
            optimizer.step()
        self.capturing = False
        return graph


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setattr(torch_graphs, "_captured", {})
    return Program()


def test_each_replay_is_a_step_and_the_capture_is_none(program: Program) -> None:
    optimizer = program.optimizer()
    graph = program.capture(optimizer)
    assert program.steps == []
    for _ in range(3):
        graph.replay()  # type: ignore[attr-defined]
    assert program.steps == [optimizer] * 3


def test_eager_steps_beside_a_graph_count_once(program: Program) -> None:
    """Passes alone are captured, the optimizer steps as ever; then comes another graph with two optimizers in it."""
    optimizer, other = program.optimizer(), program.optimizer()
    passes = program.capture()
    passes.replay()  # type: ignore[attr-defined]
    optimizer.step()
    both = program.capture(optimizer, other, optimizer)
    both.replay()  # type: ignore[attr-defined]
    passes.replay()  # type: ignore[attr-defined]
    assert program.steps == [optimizer, optimizer, other]


def test_a_graph_that_is_captured_anew_forgets(program: Program) -> None:
    graph = program.capture(program.optimizer())
    graph.capture_begin()  # type: ignore[attr-defined]
    program.capturing = False
    graph.replay()  # type: ignore[attr-defined]
    assert program.steps == []


def test_a_failed_replay_is_no_step_and_raises_its_error(program: Program) -> None:
    graph = program.capture(program.optimizer())
    graph.broken = True  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="CUDA error") as caught:
        graph.replay()  # type: ignore[attr-defined]
    assert "torch_graphs" not in "".join(traceback.format_tb(caught.tb)[1:])
    assert program.steps == []


def test_the_hooks_keep_no_references(program: Program) -> None:
    optimizer = program.optimizer()
    graph = program.capture(optimizer)
    del optimizer
    gc.collect()
    graph.replay()  # type: ignore[attr-defined]
    assert program.steps == []
    del graph
    gc.collect()
    assert torch_graphs._captured == {}
