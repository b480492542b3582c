"""Real PyTorch programs, unmodified, seen through a real sidecar.

PyTorch takes long to import, so one program goes through several phases, and each test looks at what one has added.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.comparison import bare
from tests.integration.profiler.conftest import PATIENCE, ROOT, Page, Pod, free_port
from tests.integration.profiler.test_profiler_broken import fail

pytestmark = pytest.mark.torch

TRAIN: Final = str(ROOT / "examples" / "training" / "train_torch.py")
INPUT: Final = f'{contract.STEP_SHARE}{{part="{contract.PART_INPUT}"}}'

_PHASES: Final = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    step = 0.0  # seconds of the last one
    def __init__(self, load=0.0): self.load = load
    def __len__(self): return 200
    def __getitem__(self, i):
        time.sleep(max(self.load, Data.step / 3) if self.load else 0.0)
        return torch.ones(4), 1.0

def train(loader, accumulate=1, evaluate=False):
    for n, (x, y) in enumerate(loader):
        began = time.perf_counter()
        net(x).mean().backward()
        if (n + 1) % accumulate == 0:
            optimizer.step(); optimizer.zero_grad()
            Data.step = time.perf_counter() - began
            for _ in DataLoader(Data(), batch_size=50) if evaluate and n == 9 else (): pass

def forked():
    child = os.fork()
    if child == 0:
        train(DataLoader(Data(), batch_size=10))
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

def compiled():
    @torch.compile(backend="eager")
    def update(): optimizer.step()
    for _ in range(12):
        net(torch.ones(2, 4)).mean().backward()
        update()

if __name__ == "__main__":
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for phase, run in {
        "waits": lambda: train(DataLoader(Data(0.005), batch_size=10)),
        "accumulates": lambda: train(DataLoader(Data(), batch_size=10), accumulate=4),
        "evaluates": lambda: train(DataLoader(Data(), batch_size=10), evaluate=True),
        "forks workers": lambda: train(DataLoader(Data(), 10, num_workers=2, multiprocessing_context="fork")),
        "spawns workers": lambda: train(DataLoader(Data(), 10, num_workers=1, multiprocessing_context="spawn")),
        "forks": forked,
        "compiles": compiled,
    }.items():
        run()
        print(phase, file=sys.stderr)
        print(phase, flush=True)
        sys.stdin.readline()
"""


_COUNTED: Final = """
import sys, torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
optimizer = torch.optim.AdamW(net.parameters())
def step():
    loss = nn.functional.cross_entropy(net(torch.randn(6, 3, 8, 8)), torch.randint(0, 5, (6,)))
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    return loss.item().hex()
print([step() for _ in range(80)][-1])
with FlopCounterMode(display=False) as counter: step()
print(counter.get_total_flops())
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def pages(make_lasting_pod: Callable[..., Pod], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """The page after each phase, with the increments of counters."""
    pod = make_lasting_pod()
    pod.start_sidecar()
    script = tmp_path_factory.mktemp("torch") / "program.py"
    script.write_text(_PHASES)
    program = pod.start(str(script))
    assert program.stdin is not None and program.stdout is not None
    found: dict[str, Page] = {}
    before: Page = {}
    for line in program.stdout:
        page = pod.caught_up()
        found[line.strip()] = {
            **page,
            **{name: page[name] - before.get(name, 0) for name in (contract.STEPS, contract.SAMPLES)},
        }
        before = page
        program.stdin.write("\n")
        program.stdin.flush()
    _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert err.startswith("".join(f"{phase}\n" for phase in found if phase != "compiles")), err
    assert "rightpool" not in err, "the compiler has something to say, but not of the agent"
    return found


def test_steps_samples_and_the_wait_for_input(pages: dict[str, Page]) -> None:
    assert pages["waits"][contract.STEPS] == 20
    assert pages["waits"][contract.SAMPLES] == 200
    assert pages["waits"][INPUT] > 0.5, "nearly all of the step is loading"


def test_flops_of_a_step(make_pod: Callable[..., Pod]) -> None:
    """As PyTorch's counter has them, with the losses that there are without the agent, to the last bit."""
    pod = make_pod()
    pod.start_sidecar()
    program = pod.start("-c", _COUNTED)
    page = pod.page(lambda page: page.get(contract.STEPS, 0) == 81 and contract.STEP_FLOPS in page)
    out, err = program.communicate(timeout=PATIENCE)
    assert page[contract.STEP_FLOPS] == float(out.split()[-1])
    assert (program.returncode, out, err) == bare(("-c", _COUNTED))


def test_accumulated_gradients_are_one_step(pages: dict[str, Page]) -> None:
    assert pages["accumulates"][contract.STEPS] == 5
    assert pages["accumulates"][contract.SAMPLES] == 200


def test_an_evaluation_between_steps_has_no_samples(pages: dict[str, Page]) -> None:
    assert pages["evaluates"][contract.SAMPLES] == 200


@pytest.mark.parametrize("phase", ["forks workers", "spawns workers"])
def test_workers_that_load_data_report_nothing(pages: dict[str, Page], phase: str) -> None:
    assert pages[phase][contract.STEPS] == 20
    assert pages[phase][contract.SAMPLES] == 200


def test_a_forked_child_that_trains_counts(pages: dict[str, Page]) -> None:
    """It is no rank of anything, and has inherited its optimizer."""
    assert pages["forks"][contract.STEPS] == 20
    assert pages["forks"][contract.SAMPLES] == 200


def test_a_compiled_optimizer_step(pages: dict[str, Page]) -> None:
    """A program that compiles its update runs as before, and is counted."""
    assert pages["compiles"][contract.STEPS] == 12


def test_torchrun_counts_steps_once_and_samples_of_all(pod: Pod, tmp_path: Path) -> None:
    program = pod.start(
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        f"--master-port={free_port()}",
        TRAIN,
        "--steps=40",
        "--batch=16",
        "--width=64",
        CHECKPOINT_DIR=str(tmp_path),
        **{contract.ENV_CHECKPOINT_PATH: str(tmp_path)},
    )
    out, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err
    assert "saved step 40" in out
    found = pod.page(lambda page: page.get(contract.SAMPLES) == 2 * 40 * 16)  # both ranks have reported all
    assert found[contract.STEPS] == 40, "those of the program, whichever rank was heard first"


_PROFILED = """
import glob, os, time
import torch
net = torch.nn.Linear(64, 64)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def steps(n):
    for _ in range(n):
        net(torch.ones(8, 64)).mean().backward(); opt.step(); time.sleep(0.005)
def left(): return glob.glob(os.environ["RIGHTPOOL_SHARED_DIR"] + "/traces/*.json")
while not left(): steps(9)  # Kineto, which says nothing then, has been met by the agent before the program
os.unlink(left()[0])
for _ in range(8):
    with torch.profiler.profile() as own: steps(7)
    assert any("addmm" in e.key for e in own.key_averages())
    with torch.autograd.profiler.profile() as own: steps(3)
    assert any("addmm" in e.key for e in own.key_averages())
    steps(9)
while not left(): steps(9)
print("done")
"""


def test_traces_are_taken_between_steps_and_give_way(make_pod: Callable[..., Pod]) -> None:
    """With CPU operations, all that can be recorded here, and no pause between traces."""
    pod = make_pod()
    pod.trace_all_the_time()
    pod.alter(
        "torch_trace.py",
        {
            'hooks.platform != "cuda"': "False",
            'use_device="cuda" if cuda else None,': "",
            "use_cpu=requested": "use_cpu=True",
            "_left <= 0 or not _worth_it()": "False",
        },
    )
    program = pod.start("-c", _PROFILED)
    out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out, err) == (0, "done\n", "")
    left = list((pod.shared / "traces").iterdir())
    assert [path.name for path in left] == [f"{program.pid}.4.kineto.json"]
    assert b"aten::addmm" in left[0].read_bytes()


_ODD: Final = """
import torch
from torch.utils.data import DataLoader

class Odd:
    @property
    def shape(self): raise RuntimeError("not yet known")

net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in DataLoader(range(30), collate_fn=lambda rows: Odd()):
    net(torch.ones(2, 4)).mean().backward()
    optimizer.step()
torch.save(net.state_dict(), "/dev/null")
print(type(batch).__name__)
"""


def test_hooks_that_fail(make_pod: Callable[..., Pod]) -> None:
    """A batch that objects to being looked at, and errors of the agent's own at a step and at a save."""
    pod = make_pod()
    fail(pod, "torch_steps.py", "_meet")
    pod.alter(
        "checkpoint.py",
        {"observed: collections.deque[tuple[float, float, str | None]]": "observed: Any = None; _: Any"},
    )
    program = pod.start("-c", _ODD)
    out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out, err) == (0, "Odd\n", "")
    assert (pod.shared / "failed").exists()
