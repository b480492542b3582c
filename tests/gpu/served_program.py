"""A server that answers what waits as one batch, under requests that come at random, on a share of a GPU.

    python -m tests.gpu.served_program MODEL SECONDS RATE...
    python -m tests.gpu.served_program MODEL

Prints one line of JSON: the most requests a second with full batches; then for each RATE, a share of that, the
requests a second that came, what batches had and took in windows of two seconds, and how long requests took. Without
RATE it is asked: a line `REQUESTS_A_SECOND SECONDS LIMIT` on its input gets one with what came of them, and how many
took longer than the limit. Requests come by a Poisson process whether others are answered or not. It needs PyTorch and
torchvision, and nothing else.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
import torchvision

LARGEST: Final = {"resnet": 16, "encoder": 32}
"""Requests of a full batch, by model."""

_WINDOW: Final = 2.0
_FULL: Final = 40  # batches by which the highest rate is told


def _model(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """In bfloat16, with one full batch of input in pinned memory."""
    if name == "resnet":
        net: torch.nn.Module = torchvision.models.resnet50()
        rows = torch.randn(LARGEST[name], 3, 224, 224)
    else:
        layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True)
        net = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        rows = torch.randn(LARGEST[name], 128, 1024)
    return net.eval().cuda().to(torch.bfloat16), rows.to(torch.bfloat16).pin_memory()


@torch.inference_mode()
def _graph(net: torch.nn.Module, rows: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]:
    """A batch of this size as one launch, as servers have it: else the processor's launches take longer than it."""
    given, graph = rows.cuda(), torch.cuda.CUDAGraph()
    net(given)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = net(given)
    return graph, given, result


def served(
    answer: Callable[[int], None], largest: int, rate: float, seconds: float, seed: int, limit: float = math.inf
) -> dict[str, Any]:
    """What came of so many requests a second."""
    arrivals = np.cumsum(np.random.default_rng(seed).exponential(1.0 / rate, round(rate * seconds * 1.2)))
    arrivals = arrivals[arrivals < seconds]
    took = np.empty(len(arrivals))
    windows: list[list[float]] = []
    began, first = time.perf_counter(), 0
    while first < len(arrivals):
        now = time.perf_counter() - began
        if arrivals[first] > now:
            continue  # a process that sleeps is woken late, and its chip slows down
        last = min(int(np.searchsorted(arrivals, now, side="right")), first + largest)
        start = time.perf_counter()
        answer(last - first)
        ended = time.perf_counter()
        took[first:last] = ended - began - arrivals[first:last]
        while len(windows) <= now // _WINDOW:
            windows.append([0.0, 0.0, 0.0])
        for at, value in enumerate((1.0, float(last - first), ended - start)):
            windows[-1][at] += value
        first = last
    return {
        "rate": len(arrivals) / seconds,
        "requests": len(arrivals),
        "late": int((took > limit).sum()),
        "windows": [[requests / batches, busy / batches, requests] for batches, requests, busy in windows if batches],
        "seconds": {str(share): float(np.quantile(took, share)) for share in (0.5, 0.9, 0.95, 0.99) if len(took)},
    }


def main() -> None:
    """Measure, and print."""
    name = sys.argv[1]
    net, rows = _model(name)
    largest = LARGEST[name]

    graphs = [_graph(net, rows[:count]) for count in range(1, largest + 1)]

    @torch.inference_mode()
    def answer(count: int) -> None:
        graph, given, result = graphs[count - 1]
        given.copy_(rows[:count], non_blocking=True)
        graph.replay()
        result.cpu()

    for count in range(1, largest + 1):
        answer(count)
    began = time.perf_counter()
    for _ in range(_FULL):
        answer(largest)
    highest = _FULL * largest / (time.perf_counter() - began)
    figures = {"model": name, "largest": largest, "highest": highest}
    if len(sys.argv) == 2:
        print(json.dumps(figures), flush=True)
        for seed, line in enumerate(sys.stdin):
            rate, seconds, limit = map(float, line.split())
            print(json.dumps(served(answer, largest, rate, seconds, seed, limit)), flush=True)
        return
    seconds, shares = float(sys.argv[2]), [float(one) for one in sys.argv[3:]]
    found = [served(answer, largest, share * highest, seconds, seed) for seed, share in enumerate(shares)]
    print(json.dumps({**figures, "runs": found}), flush=True)


if __name__ == "__main__":
    main()
