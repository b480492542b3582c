"""A repository with a small PyTorch program whose commits are known: three slow it, one makes it faster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

SAME: Final = "no worse"
WORSE: Final = "worse"
BETTER: Final = "better"

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


class Commit(NamedTuple):
    """A change of one place in one file."""

    subject: str
    """Its first line."""
    file: str
    """Where."""
    before: str
    """What is replaced."""
    after: str
    """By what."""
    verdict: str = SAME
    """What it is in truth, in the words of `bench compare`."""
    cause: str = ""
    """What `bench compare` is to name."""


COMMITS: Final = (
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


def make(folder: Path) -> list[str]:
    """A repository there; its commits, the oldest first: one more than COMMITS."""
    _git(folder, "init", "-q", "-b", "main")
    for name, text in _FILES.items():
        (folder / name).write_text(text)
    found = [_commit(folder, "Train a small net")]
    for one in COMMITS:
        path = folder / one.file
        text = path.read_text()
        if text.count(one.before) != 1:
            raise ValueError(f"{one.subject}: {one.before!r} is there {text.count(one.before)} times")
        path.write_text(text.replace(one.before, one.after))
        found.append(_commit(folder, one.subject))
    return found


def check_out(folder: Path, commit: str) -> None:
    """Have its files there."""
    _git(folder, "checkout", "-q", commit)


def _commit(folder: Path, subject: str) -> str:
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", subject)
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *words: str) -> str:
    names = {f"GIT_{role}_{part}": "benchmark" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    command: Sequence[str] = ("git", *words)
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **names}, capture_output=True, text=True, check=True
    ).stdout
