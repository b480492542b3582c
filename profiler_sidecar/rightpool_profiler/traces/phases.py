"""What a PyTorch program does at a moment of its steps, by the spans that its profiler records."""

from rightpool import contract
from rightpool_profiler.traces.spans import Spans

_BACKWARD = "autograd::engine::evaluate_function"
_OPTIMIZER = "Optimizer.step#"
_MOST_STEPS = 10_000
_NEVER = 2**63 - 1


class Phases:
    """Takes the spans of a trace, in any order."""

    def __init__(self) -> None:
        self._backward, self._optimizer = Spans(), Spans()
        self.steps = 0
        """Steps of optimizers so far."""

    def add(self, name: str, start: int, end: int) -> None:
        """Any operator or annotation."""
        if name.startswith(_BACKWARD):
            self._backward.add(start, end)
        elif name.startswith(_OPTIMIZER):
            self.steps += 1
            if self.steps <= _MOST_STEPS:
                self._optimizer.add(start, end)

    def ends(self, last: int) -> list[int]:
        """When each step of an optimizer has ended; none where there are more than a short trace can have.

        last: the end of the trace. One that is ended within a step of an optimizer has its span without a length, or
        with one that goes beyond (PyTorch 2.4 and 2.15).
        """
        if self.steps > _MOST_STEPS:
            return []
        return sorted(min(end, last) if start < end else last for start, end in self._optimizer)

    def at(self, moment: int) -> str | None:
        """One of contract.TRACE_PHASES; None where it can't be told. Outside of a backward pass and the optimizer it is
        the forward pass if a backward pass comes next: before the optimizer it may be the clipping of gradients."""
        in_optimizer, next_optimizer = _beside(self._optimizer, moment)
        in_backward, next_backward = _beside(self._backward, moment)
        if in_optimizer:
            return contract.PHASE_OPTIMIZER
        if in_backward:
            return contract.PHASE_BACKWARD
        return contract.PHASE_FORWARD if next_backward < next_optimizer else None


def _beside(spans: Spans, moment: int) -> tuple[bool, int]:
    """Whether one holds the moment, and when the next one begins."""
    within = False
    for start, end in spans:
        if start > moment:
            return within, start
        within = within or moment <= end
    return within, _NEVER
