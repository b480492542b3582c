"""Real PyTorch programs, unmodified, seen through a real sidecar."""

import time
from collections.abc import Callable
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
    """The last value of each metric; all 200 samples are counted, and no more."""
    script = tmp_path / "program.py"
    defaults: dict[str, object] = {"load": 0.001, "workers": 0, "context": "", "accumulate": 1, "evaluate": False}
    script.write_text(_LOOP.format(**{**defaults, **settings}))
    program = pod.start(str(script))
    found: dict[str, float] = {}
    while program.poll() is None:  # shares are those of the last seconds, and gone when it takes long to end
        found |= pod.metrics()
        time.sleep(0.1)
    out, err = program.communicate()
    assert (program.returncode, out, err) == (0, "done\n", "")
    pod.until(lambda: pod.metrics().get(contract.SAMPLES) == 200)
    return found | pod.metrics()


def test_steps_samples_and_the_wait_for_input(pod: Any, tmp_path: Path) -> None:
    found = _run(pod, tmp_path, load=0.01)
    assert found[contract.STEPS] == 20
    assert found[contract.SAMPLES] == 200
    assert found[INPUT] > 0.5, "most of the step is loading"


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
    out, err = program.communicate(timeout=300)
    assert program.returncode == 0, err
    assert "saved step 40" in out
    pod.until(lambda: pod.metrics().get(contract.SAMPLES) == 2 * 40 * 16)  # both ranks'
    assert 0 < pod.metrics()[contract.STEPS] <= 40, "one rank's"


_PROFILED = """
import time
import torch
net = torch.nn.Linear(64, 64)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def steps(n):
    for _ in range(n):
        net(torch.ones(8, 64)).mean().backward(); opt.step(); time.sleep(0.01)
steps(150)
for _ in range(20):
    with torch.profiler.profile() as own: steps(7)
    assert any("addmm" in e.key for e in own.key_averages())
    with torch.autograd.profiler.profile() as own: steps(3)
    assert any("addmm" in e.key for e in own.key_averages())
    steps(9)
steps(150)
print("done")
"""


def test_traces_are_taken_between_steps_and_give_way(make_pod: Callable[..., Any]) -> None:
    """With CPU operations, all that can be recorded here, and no pause between traces."""
    pod = make_pod()
    agent = pod.shared / "agent" / "rightpool_agent"
    for name, changes in {
        "torch_trace.py": {
            'hooks.platform != "cuda"': "False",
            'use_device="cuda", use_cpu=False, use_kineto=True': "use_cpu=True",
            "_taken or not _worth_it()": "False",
        },
        "trace_schedule.py": {"_WARM_UP_SECONDS = 5.0": "_WARM_UP_SECONDS = 0.0", "_EVERY = 120.0": "_EVERY = 0.0"},
    }.items():
        text = (agent / name).read_text()
        for before, after in changes.items():
            assert before in text
            text = text.replace(before, after)
        (agent / name).write_text(text)
    program = pod.start("-c", _PROFILED)
    out, err = program.communicate(timeout=300)
    assert (program.returncode, out) == (0, "done\n"), err
    assert "rror" not in err
    left = list((pod.shared / "traces").iterdir())
    assert [path.name for path in left] == [f"{program.pid}.kineto.json"]
    assert b"aten::addmm" in left[0].read_bytes()


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
    out, err = program.communicate(timeout=300)
    assert (program.returncode, out) == (0, "done\n"), err
    assert "rightpool" not in err
    pod.until(lambda: pod.metrics().get(contract.STEPS) == 12)
