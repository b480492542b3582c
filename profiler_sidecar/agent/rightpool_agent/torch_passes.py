"""Steps of a PyTorch program in which no optimizer of PyTorch's is seen: of another library's, or of its own.

A step is then a change of a parameter between two backward passes, and if no change can be seen, the pass itself. Its
samples are the rows that the data loader has handed out for its passes, if it has for each.
"""

from __future__ import annotations

import collections
import sys
import time
import weakref
from typing import Any

from . import torch_loader

ENOUGH = 3  # passes or changes until they are taken for steps
_MAX_NODES = 4096
_MAX_KEPT = 1 << 16


class Passes:
    """Backward passes so far."""

    def __init__(self) -> None:
        self.count = 0
        self.changes = 0  # of them came after a change
        self.settled = 0  # of them were taken for steps
        self._moments: collections.deque[float] = collections.deque(maxlen=_MAX_KEPT)  # not taken yet
        self._changed: collections.deque[float] = collections.deque(maxlen=_MAX_KEPT)
        self._leaf: Any = None  # weak reference to a parameter
        self._version = 0
        self._open = 0  # rows since the last change
        self._rows = 0  # those before
        self._with_rows = 0  # passes
        self._changes_with_rows = 0
        self._missed = False
        self._unowned = False  # was the last pass made before any optimizer of PyTorch's was?

    @property
    def device(self) -> str | None:
        leaf = None if self._leaf is None else self._leaf()
        return None if leaf is None else leaf.device.type

    def begins(self, tensors: Any, optimizers: int) -> None:
        """A backward pass from these tensors: has a parameter changed since the last one?

        optimizers: groups of parameters that optimizers of PyTorch's have. With any, batches are those of their steps.
        """
        now = time.perf_counter()
        leaf = None if self._leaf is None else self._leaf()
        if leaf is None:
            leaf = _find_parameter(tensors)
            if leaf is None:
                return
            if self._leaf is not None:  # another one has taken its place
                self._change(now)
            self._leaf = weakref.ref(leaf)
        elif leaf._version != self._version:
            self._change(now)
        self._version = leaf._version
        self._moments.append(now)
        self.count += 1
        self._unowned = not optimizers
        if torch_loader.used and not optimizers:
            rows = torch_loader.consumed(False)
            self._missed = self._missed or rows is None
            self._open += rows or 0
            self._with_rows += 1

    def handed_over(self) -> tuple[bool, int | None]:
        """Whether the first step of an optimizer was made with batches that are taken here, and their rows; None if not
        known. So it is where the optimizer was made after the pass. Some of several may have been for something else.
        """
        if not self._unowned or not self._with_rows or (self.settled and self.changes >= ENOUGH):
            return False, 0
        return True, None if self._missed or self.count > 1 else self._open

    def _change(self, now: float) -> None:
        self._changed.append(now)
        self.changes += 1
        if self._open:
            self._rows, self._open = self._rows + self._open, 0
            self._changes_with_rows += 1

    def take(self, final: bool, hooked: bool, optimizers: int) -> list[float]:
        """Moments of the steps that are new. Called by the agent's thread, while the program goes on.

        hooked: an optimizer of PyTorch's steps by now. optimizers: groups of parameters that such ones have.
        """
        if not self.count or (hooked and not self.settled):
            return []
        leaf = None if self._leaf is None else self._leaf()
        if final and not hooked and leaf is not None and leaf._version != self._version:
            self._version = leaf._version
            self._change(time.perf_counter())
        if self.changes >= ENOUGH or (final and self.changes):  # also those before an optimizer took over
            total, moments = self.changes, self._changed
        elif not hooked and not self.changes and not optimizers and (final or self.count > 2 * ENOUGH):
            total, moments = self.count, self._moments
        else:
            return []
        found = [moments.popleft() for _ in range(min(total - self.settled, len(moments)))]
        self.settled += len(found)
        if moments is self._changed:
            self._moments.clear()
        return found

    @property
    def samples(self) -> int | None:
        """Of the steps so far; None if they are not all known."""
        if self._missed or torch_loader.repeats:
            return None
        if self.changes:
            return self._rows if self._changes_with_rows == self.changes else None
        return self._open if self._with_rows == self.count else None


def _find_parameter(tensors: Any) -> Any:
    """A parameter that the gradient goes to."""
    found: Any = None
    left = [one.grad_fn for one in (tensors if isinstance(tensors, (list, tuple)) else [tensors])]
    kind = sys.modules["torch.nn.parameter"].Parameter
    for _ in range(_MAX_NODES):
        if not left:
            break
        node = left.pop()
        if node is None:
            continue
        variable = getattr(node, "variable", None)
        if variable is not None:
            if isinstance(variable, kind):
                return variable
            found = variable if found is None else found
        left += [one for one, _ in node.next_functions]
    return found
