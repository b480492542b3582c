"""What the programs of `labelled_models` and `labelled_libraries` share: their clock, sizes, counts, and the loop of a
classifier."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

CPU = os.environ.get("LABELLED_ON_CPU") == "1"  # sizes for trying the programs without a GPU


class Clock:
    """Whether the program's time is over. It counts from the first question on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None

    def over(self) -> bool:
        self._until = self._until or time.monotonic() + self._seconds
        return time.monotonic() > self._until


def wait_for_turn() -> None:
    """Wait for a letter, one for each process: the libraries are imported, and nothing was asked of the GPU."""
    os.read(sys.stdin.fileno(), 1)


def counted(steps: int, samples: int) -> None:
    """Say at the program's end what it has done, and wait until the sidecar knows of it."""
    print(f"counted {steps} {samples}", flush=True)
    time.sleep(3)


def small(size: int, on_cpu: int) -> int:
    return on_cpu if CPU else size


def device() -> Any:
    import torch

    return torch.device("cpu" if CPU else "cuda")


def train(
    clock: Clock, net: Any, batch: Callable[[], tuple[Any, Any]], *, lr: float = 1e-4, every: int = 5, amp: bool = True
) -> None:
    """A classifier's loop. `batch` gives inputs and the numbers of their classes; `every`: steps between two looks."""
    import torch
    from torch.nn import functional

    optimizer = torch.optim.AdamW(net.parameters(), lr=lr)
    steps = 0
    while steps % every or not clock.over():
        x, y = batch()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device().type, torch.bfloat16, enabled=amp):
            out = net(x)
        functional.cross_entropy(out.float(), y).backward()
        optimizer.step()
        steps += 1
