"""A program with PyTorch on a processor: its loader, its precision and its loss slow it."""

from __future__ import annotations

from typing import Final

from benchmarks.bench.history import BETTER, WORSE, Commit, History

_FILES: Final = {
    "data.py": """\
import time

import torch

BATCHES = 8
LATENCY = 0.004  # seconds that the store takes for a batch


class Samples(torch.utils.data.Dataset):
    def __init__(self):
        self.kept = {}

    def __len__(self):
        return 1 << 30

    def __getitems__(self, indexes):
        batch = indexes[0] // len(indexes) % BATCHES
        if batch not in self.kept:
            self.kept[batch] = self.fetch(batch, len(indexes))
        return self.kept[batch]

    def fetch(self, batch, size):
        time.sleep(LATENCY)
        return list(zip(torch.full((size, 192), batch / BATCHES), torch.ones(size, 1)))
""",
    "train.py": """\
import torch

from data import Samples

torch.set_num_threads(1)
layers = [torch.nn.Linear(192, 192) for _ in range(3)]
net = torch.nn.Sequential(*layers, torch.nn.Linear(192, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
for x, y in torch.utils.data.DataLoader(Samples(), batch_size=128):
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
}

_FETCHED: Final = "        return self.fetch(batch, len(indexes))"
_KEPT: Final = """\
        if batch not in self.kept:
            self.kept[batch] = self.fetch(batch, len(indexes))
        return self.kept[batch]"""

_COMMITS: Final = (
    Commit("Name the width", "train.py", "layers = [", "width = 192\nlayers = ["),
    Commit("Use the width", "train.py", "Linear(192, 192)", "Linear(width, width)"),
    Commit(
        "Keep no sample in memory",
        "data.py",
        _KEPT,
        _FETCHED,
        WORSE,
        "waiting for input went from",
    ),
    Commit("Count steps", "train.py", "\nfor x, y in torch.utils", "\nstep = 0\nfor x, y in torch.utils"),
    Commit("Advance the count", "train.py", "    optimizer.zero_grad()", "    optimizer.zero_grad()\n    step += 1"),
    Commit(
        "Keep samples again",
        "data.py",
        _FETCHED,
        _KEPT,
        BETTER,
        "waiting for input went from",
    ),
    Commit(
        "Print the loss at times",
        "train.py",
        "    step += 1",
        "    step += 1\n    if step % 1000 == 0:\n        print(loss)",
    ),
    Commit(
        "Train in double precision",
        "train.py",
        "torch.set_num_threads(1)\n",
        "torch.set_num_threads(1)\ntorch.set_default_dtype(torch.float64)\n",
        WORSE,
        "it computes in fp64, and did in fp32",
    ),
    Commit(
        "Clear gradients first", "train.py", "    loss.backward()\n", "    optimizer.zero_grad()\n    loss.backward()\n"
    ),
    Commit(
        "Watch the mean loss after the step, too",
        "train.py",
        "    optimizer.step()\n",
        "    optimizer.step()\n    after = sum(torch.nn.functional.mse_loss(net(x), y) for _ in range(2)) / 2\n",
        WORSE,
        "working on the chip",
    ),
    Commit("Say what the data are", "data.py", "import time\n", '"""Samples from a store."""\n\nimport time\n'),
)

ON_PROCESSOR: Final = History(_FILES, _COMMITS, ("train.py",))
