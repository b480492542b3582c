"""What a trace on request costs a PyTorch program on a CPU: within its steps, where it ends, and in the steps after it.

    PYTHONPATH=operator:profiler_sidecar python -m benchmarks.trace_cost [--rounds 10]

Two copies of each program make the same steps in turn in one process, one of them traced by the agent's own code. Their
losses are compared bit for bit; exit code 1 where they differ. A trace is taken with operators alone, with one more
thing that can be recorded, and with all as the agent has it. Figures are medians of as many rounds, all but the last
one as a share of the processor time of the steps that were traced: how much longer these took, what the program's
thread needed to begin and to end the trace, and the agent's thread to write it and to free it. These two begin with a
backward pass and hold the interpreter's lock, which the program needs when the pass ends: it waits for what takes
longer than the pass. The last figure says how much longer the steps afterwards took by the clock, up to 50 of them in
half a second, so that it means something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import torch
import torch.autograd.profiler

# No package of the product. Python has started without it, so that nothing of it is at work but what is called here.
sys.path.append(str(Path(__file__).resolve().parents[1] / "profiler_sidecar" / "agent"))
from rightpool_agent import torch_log, torch_steps, torch_trace  # type: ignore[import-not-found]

_AFTER: Final = 50  # steps, or as many as take half a second; the trace is freed within the first two or three
_AFTER_SECONDS: Final = 0.5
_AFTER_LEAST: Final = 3
_COLUMNS: Final = ("begins", "steps", "ends", "written", "freed", "waits", "after")

_Times = dict[str, float]
_Profiler = Callable[[Any, bool], Any]


class Program(NamedTuple):
    """One of two copies."""

    step: Callable[[], torch.Tensor]
    losses: list[float]

    def make(self, steps: int) -> None:
        for _ in range(steps):
            self.losses.append(self.step().item())


def _trained(net: torch.nn.Module, batch: torch.Tensor) -> Program:
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def step() -> torch.Tensor:
        loss = net(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return Program(step, [])


def _linear() -> Program:
    return _trained(torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(8))), torch.randn(64, 256))


def _tiny() -> Program:
    layers = (layer for _ in range(60) for layer in (torch.nn.Linear(16, 16), torch.nn.Tanh()))
    return _trained(torch.nn.Sequential(*layers), torch.randn(8, 16))


def _transformer(layers: int, rows: int) -> Program:
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True, dropout=0.0)
    net = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return _trained(net, torch.randn(rows, 64, 256))


def _cnn() -> Program:
    nn = torch.nn
    widths = (3, 16, 32, 64)
    blocks = (
        part
        for before, after in pairwise(widths)
        for part in (nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2))
    )
    return _trained(nn.Sequential(*blocks, nn.Flatten(), nn.Linear(64 * 64, 10)), torch.randn(32, 3, 64, 64))


PROGRAMS: Final[dict[str, Callable[[], Program]]] = {
    "8 linear layers": _linear,
    "60 tiny layers": _tiny,
    "CNN of 3 blocks": _cnn,
    "transformer of 2 layers": lambda: _transformer(2, 8),
    "transformer of 6 layers": lambda: _transformer(6, 16),
}


def _alone(**recorded: bool) -> _Profiler:
    """A profiler of operators and one more thing, with PyTorch's defaults."""
    return lambda module, _: module.profile(use_kineto=True, **recorded)


def _silent_memory(module: Any, _: bool) -> Any:
    return module.profile(use_kineto=True, profile_memory=torch_log.silence())


WAYS: Final[dict[str, _Profiler]] = {
    "operators": _alone(),
    "and shapes": _alone(record_shapes=True),
    "and memory": _silent_memory,
    "all, as the agent": torch_trace._profiler,
}


_passes: list[float] = []  # what each took, of the traced program since its trace


def spent(work: Callable[[], object], clock: Callable[[], float] = time.thread_time) -> float:
    """Seconds, by default of this thread's processor time."""
    began = clock()
    work()
    return clock() - began


def trace(traced: Program, copy: Program, path: Path) -> _Times:
    """What one trace costs, by column."""
    copied = spent(lambda: copy.make(torch_trace._STEPS))
    session = torch_trace.begin_requested()
    begins = spent(lambda: torch_trace.on_step(session))
    steps = ends = 0.0
    while not session.ended:
        steps += spent(lambda: traced.make(1))
        ends += spent(lambda: torch_trace.on_step(session))
    times: list[float] = []
    session.result = _Result(session.result, times)
    later = max(_AFTER_LEAST, min(_AFTER, int(_AFTER_SECONDS * torch_trace._STEPS / copied)))
    _passes.clear()
    agent = threading.Thread(target=torch_trace.finish, args=(session, str(path)))
    agent.start()
    after = spent(lambda: traced.make(later), time.perf_counter)
    agent.join()
    path.unlink()
    usual = median(_passes)
    return {
        "step": copied / torch_trace._STEPS,
        "begins": begins / copied,
        "steps": steps / copied - 1,
        "ends": ends / copied,
        "written": times[0] / copied,
        "freed": times[1] / copied,
        "waits": sum(max(0.0, one - usual) for one in times) / copied,
        "after": after / spent(lambda: copy.make(later), time.perf_counter) - 1,
    }


class _Result:
    """What PyTorch has recorded. It adds to `times` what it takes to write it, and then to free it."""

    def __init__(self, result: Any, times: list[float]) -> None:
        self._held, self._times = [result], times

    def save(self, path: str) -> None:
        self._times.append(spent(lambda: self._held[0].save(path)))

    def __del__(self) -> None:
        self._times.append(spent(self._held.clear))


def _watch_passes() -> None:
    original = torch.autograd.backward

    def backward(*args: Any, **options: Any) -> None:
        _passes.append(spent(lambda: original(*args, **options)))

    torch.autograd.backward = backward


def rows(name: str, rounds: int, folder: Path) -> Iterator[str]:
    """Of the table: a program by way of tracing. Raises ValueError where a loss differs."""
    traced, copy = (_made(name) for _ in range(2))
    for one in (traced, copy):
        one.make(10)
    found: dict[str, list[_Times]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, profiler in WAYS.items():
            torch_trace._profiler = profiler
            found[way].append(trace(traced, copy, folder / "trace.json"))
    if traced.losses != copy.losses:
        raise ValueError(f"{name}: the losses of the traced program differ from those of its copy")
    for way, times in found.items():
        shares = " | ".join(f"{median(one[column] for one in times):.0%}" for column in _COLUMNS)
        yield f"| {name} | {median(one['step'] for one in times) * 1e3:.1f} ms | {way} | {shares} |"


def _made(name: str) -> Program:
    torch.manual_seed(0)
    return PROGRAMS[name]()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the programs' names")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch_steps.platform = "cpu"
    torch_steps._wrap_backward(sys.modules["torch.autograd"])
    torch_trace.install()
    _watch_passes()
    print(f"PyTorch {torch.__version__}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    columns = "begins | its steps | ends | written | freed | program waits | steps after"
    print(f"| program | step | recorded | {columns} |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="rightpool-") as folder:
        for name in PROGRAMS:
            if name.startswith(tuple(options.only)):
                try:
                    for row in rows(name, options.rounds, Path(folder)):
                        print(row, flush=True)
                except ValueError as error:
                    print(error)
                    return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
