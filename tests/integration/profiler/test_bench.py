"""`rightpool bench` with a real PyTorch program: measured twice, and called worse where its data come slower."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.profiler.conftest import ROOT, clean_environment

pytestmark = pytest.mark.torch

SLOW_DATA: Final = """
import sys, time, torch
torch.set_num_threads(1)
class Data(torch.utils.data.Dataset):
    def __len__(self): return 1 << 30
    def __getitem__(self, i):
        time.sleep(float(sys.argv[1]))
        return torch.ones(16), torch.ones(1)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for x, y in torch.utils.data.DataLoader(Data(), batch_size=4):
    torch.nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def bench(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    sources = os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar")))
    command = [sys.executable, "-m", "rightpool.cli.main", "bench", *words]
    return subprocess.run(command, env=clean_environment(PYTHONPATH=sources), cwd=cwd, capture_output=True, text=True)


def measured(cwd: Path, name: str, wait: float) -> dict[str, Any]:
    (cwd / "train.py").write_text(SLOW_DATA)
    done = bench("run", "--seconds=6", f"-o{name}", "--name=tiny", "--", sys.executable, "train.py", str(wait), cwd=cwd)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((cwd / name).read_text())
    return found


def test_a_program_is_measured_and_a_slower_one_is_worse(tmp_path: Path) -> None:
    fast, slow = measured(tmp_path, "fast.json", 0.02), measured(tmp_path, "slow.json", 0.2)
    assert fast["unit"] == "Samples" and 4 < fast["rate"] < 51
    assert slow["bottleneck"] == "InputBound" and slow["shares"]["input"] > 0.5
    assert sum(fast["shares"].values()) == pytest.approx(1.0)
    assert fast["memoryBytes"] > 0 and fast["flopsUtilization"] is None
    done = bench("compare", "fast.json", "slow.json", "--junit", "junit.xml", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert done.stdout.startswith("**tiny**: worse: samples/s changed by -")
    assert "<failure" in (tmp_path / "junit.xml").read_text()
    assert bench("compare", "fast.json", "fast.json", cwd=tmp_path).returncode != 1


LOGGED: Final = """
import json, sys, time, torch
torch.set_num_threads(1)
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
for step in range(1 << 30):
    time.sleep(0.02)
    net(torch.ones(4, 16)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    event = {"time_ms": int(time.time() * 1e3), "key": "train_loss", "metadata": {"samples_count": 100 * step}}
    print(":::MLLOG", json.dumps(event), flush=True)
"""


def test_samples_are_taken_from_lines_of_mlperf_and_the_lines_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOGGED)
    done = bench("run", "--seconds=6", "--mllog", "--", sys.executable, "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "bench.json").read_text())
    assert found["unit"] == "Samples" and 400 < found["rate"] < 5000
    last = json.loads(done.stdout.splitlines()[-1].removeprefix(":::MLLOG "))
    assert last["metadata"]["samples_count"] == 100 * (done.stdout.count(":::MLLOG") - 1)
