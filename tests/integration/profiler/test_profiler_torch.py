"""Real PyTorch programs, unmodified, seen through a real sidecar."""

from pathlib import Path
from typing import Any

import pytest

from rightpool import contract

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[3]
TRAIN = str(ROOT / "examples" / "training" / "train_torch.py")
INPUT = f'{contract.STEP_SHARE}{{part="{contract.PART_INPUT}"}}'

_LOOP = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 200
    def __getitem__(self, i):
        time.sleep({load})
        return torch.ones(4), 1.0
if __name__ == "__main__":
    net = torch.nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    loader = DataLoader(Data(), batch_size=10, num_workers={workers}{context})
    for n, (x, y) in enumerate(loader):
        net(x).mean().backward()
        if (n + 1) % {accumulate} == 0:
            opt.step(); opt.zero_grad()
            for _ in DataLoader(Data(), batch_size=50) if {evaluate} and n == 9 else (): pass
    print("done")
"""


def _run(pod: Any, tmp_path: Path, **settings: object) -> dict[str, float]:
    script = tmp_path / "program.py"
    defaults: dict[str, object] = {"load": 0.001, "workers": 0, "context": "", "accumulate": 1, "evaluate": False}
    script.write_text(_LOOP.format(**{**defaults, **settings}))
    program = pod.start(str(script))
    out, err = program.communicate(timeout=120)
    assert (program.returncode, out, err) == (0, "done\n", "")
    pod.until(lambda: pod.metrics().get(contract.STEPS), 5)
    found: dict[str, float] = pod.metrics()
    return found


def test_steps_samples_and_the_wait_for_input(pod: Any, tmp_path: Path) -> None:
    found = _run(pod, tmp_path, load=0.005)
    assert found[contract.STEPS] == 20
    assert found[contract.SAMPLES] == 200
    assert found[INPUT] > 0.8, "nearly all of the step is loading"


def test_accumulated_gradients_are_one_step(pod: Any, tmp_path: Path) -> None:
    found = _run(pod, tmp_path, accumulate=4)
    assert found[contract.STEPS] == 5
    assert found[contract.SAMPLES] == 200


def test_an_evaluation_between_steps_has_no_samples(pod: Any, tmp_path: Path) -> None:
    assert _run(pod, tmp_path, evaluate=True)[contract.SAMPLES] == 200


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_that_load_data_report_nothing(pod: Any, tmp_path: Path, context: str) -> None:
    found = _run(pod, tmp_path, workers=2, context=f', multiprocessing_context="{context}"')
    assert found[contract.STEPS] == 20
    assert found[contract.SAMPLES] == 200


def test_torchrun_counts_steps_once_and_samples_of_all(pod: Any, tmp_path: Path) -> None:
    program = pod.start(
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--master-port=29731",
        TRAIN,
        "--steps=40",
        "--batch=16",
        "--width=64",
        CHECKPOINT_DIR=str(tmp_path),
        **{contract.ENV_CHECKPOINT_PATH: str(tmp_path)},
    )
    out, err = program.communicate(timeout=120)
    assert program.returncode == 0, err
    assert "saved step 40" in out
    found = pod.metrics()
    assert 0 < found[contract.STEPS] <= 40, "one rank's"
    assert found[contract.SAMPLES] == 2 * 40 * 16, "both ranks'"


def test_a_compiled_optimizer_step(pod: Any) -> None:
    """A program that compiles its update runs as before, and is counted."""
    program = pod.start(
        "-c",
        """
import torch
net = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
@torch.compile(backend="eager")
def update(): opt.step()
for _ in range(12):
    net(torch.ones(2, 4)).mean().backward()
    update()
print("done")
""",
    )
    out, err = program.communicate(timeout=120)
    assert (program.returncode, out) == (0, "done\n"), err
    assert "rightpool" not in err
    pod.until(lambda: pod.metrics().get(contract.STEPS) == 12, 5)
