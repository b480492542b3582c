"""Runs a PyTorch program on this machine's GPUs with the agent and a sidecar, and compares their values.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_agent_nvml [--gpus 1 | --graph] [--seconds 40]

Needs torch with CUDA, nvidia-smi, and `pynvml` (nvidia-ml-py) for the chip counters. Prints one line per quantity: what
the program measured of itself or nvidia-smi says, what the page says, and whether they agree. With several GPUs the
program is DistributedDataParallel, and the share of exposed communication is held against the time that its steps take
longer than without synchronising. Exits 1 if something disagrees, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import Checks, Page, Pod, bare_environment, labelled

PROGRAM = """
import contextlib, json, os, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

WIDTH, LAYERS, BATCH, PASSES = 4096, 16, 2048, 3

class Noise(Dataset):
    def __len__(self): return 10**9
    def __getitems__(self, indexes): return torch.randn(len(indexes), 8)  # a row for each index, made at once

rank, local, world = (int(os.environ.get(n, d)) for n, d in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")))
seconds, how = float(sys.argv[1]), sys.argv[2]
torch.cuda.set_device(local)
net = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]).cuda().bfloat16()
if world > 1:
    dist.init_process_group("nccl", device_id=torch.device("cuda", local))
    net = DistributedDataParallel(net, device_ids=[local])
optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
batches = iter(
    DataLoader(Noise(), batch_size=BATCH, collate_fn=lambda rows: rows, num_workers=2, prefetch_factor=16)
)
widen = torch.randn(8, WIDTH, device="cuda", dtype=torch.bfloat16)
x = torch.empty(BATCH, 8, device="cuda")

def passes():
    y = x.bfloat16() @ widen
    for _ in range(PASSES):
        y = y + net(y)  # enough work for a step to be the GPU's
    y.float().mean().backward()

def step():
    passes()
    optimizer.step(); optimizer.zero_grad()

def alone():
    with net.no_sync(): step()

def train(seconds, step):
    began, steps, first = time.time(), 0, None
    while True:
        x.copy_(next(batches))
        step()
        steps += 1
        if steps == 10:
            torch.cuda.synchronize(); first = time.time()
        if steps % 10 == 0:
            torch.cuda.synchronize()
            # All ranks must stop at the same step.
            over = torch.tensor(float(time.time() - began > seconds), device="cuda")
            if world > 1: dist.all_reduce(over)
            if over.item() > 0: break
    return steps, (time.time() - first) / (steps - 10)

steps = 0
if how == "graph":  # the whole step, the optimizer's too
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            x.copy_(next(batches)); step()
            steps += 1
    torch.cuda.current_stream().wait_stream(aside)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured): step()
    more, each = train(seconds, captured.replay)
else:
    more, each = train(seconds, step)
steps += more
found = {"steps": steps, "samples": steps * BATCH * world, "step": each,
         "operations": LAYERS * PASSES * 3 * 2 * BATCH * WIDTH**2}
if how == "alone":
    found["unsynchronised"] = train(seconds, alone)[1]
if torch.cuda.get_device_capability() == (9, 0):
    # Hopper's tensor cores: 4096 bfloat16 operations a clock and multiprocessor.
    found["operations_a_clock"] = 4096 * torch.cuda.get_device_properties(0).multi_processor_count
if rank == 0:
    print(json.dumps(found), flush=True)
if world > 1: dist.destroy_process_group()
"""
_BARE_SECONDS = 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--graph", action="store_true", help="the whole step is replayed as a CUDA graph (one GPU)")
    options = parser.parse_args()
    machine.require("torch", options.gpus)
    with tempfile.TemporaryDirectory() as folder, Pod(options.gpus) as pod:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM)
        launch = ["-m", "torch.distributed.run", f"--nproc-per-node={options.gpus}"] if options.gpus > 1 else []
        command = [*launch, str(script)]
        how = "graph" if options.graph else "eager"
        bare = subprocess.run(
            [sys.executable, *command, str(_BARE_SECONDS), "alone" if options.gpus > 1 else how],
            env=bare_environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        program = pod.start(*command, str(options.seconds), how)
        page: Page = {}
        recent: deque[tuple[Page, list[machine.Reading]]] = deque(maxlen=12)
        while program.poll() is None:
            time.sleep(1)
            page = pod.page()
            recent.append((page, machine.readings()))
        out, err = program.communicate()
        last = pod.page()
    # The program ends in the last moments; the page before is an average of the preceding ten seconds.
    page, seen = recent[-3][0], [readings for _, readings in list(recent)[:-2]]
    checks = Checks()
    checks.true("exit code", program.returncode == 0, f"{program.returncode} {err[-2000:].strip()}")
    if program.returncode == 0:
        own = json.loads(out)
        compare_steps(checks, json.loads(bare.stdout), own, last)
        compare_chips(checks, own, page, seen, options.gpus)
        compare_shares(checks, json.loads(bare.stdout), page, options.gpus)
    return 1 if checks.failed else 0


def compare_steps(checks: Checks, bare: Page, own: Page, last: Page) -> None:
    """Compare with the program's own count and clock."""
    mean = last[f"{contract.STEP_SECONDS}_sum"] / last[f"{contract.STEP_SECONDS}_count"]
    checks.near("steps", own["steps"], last.get(contract.STEPS, 0), 0)
    checks.near("samples", own["samples"], last.get(contract.SAMPLES, 0), 0)
    checks.near("step time, ms", own["step"] * 1e3, mean * 1e3, 0.05 * own["step"] * 1e3)
    checks.near("step time without the agent, ms", bare["step"] * 1e3, own["step"] * 1e3, 0.05 * bare["step"] * 1e3)


def compare_chips(checks: Checks, own: Page, page: Page, seen: list[list[machine.Reading]], gpus: int) -> None:
    """Compare with nvidia-smi, and with the arithmetic of the program."""
    for name, metric, field, tolerance in (
        ("memory in use, GiB", contract.CHIP_MEMORY_USED, "memory_used", 0.02),  # one counts the driver's own, one not
        ("memory, GiB", contract.CHIP_MEMORY_TOTAL, "memory_total", 0.02),
        ("power, W", contract.CHIP_POWER, "power", 0.1),
    ):
        unit = 2**30 if "GiB" in name else 1
        found = labelled(page, metric)
        checks.true(name, len(found) == gpus, f"of {len(found)} chips")
        expected = [statistics.median(getattr(one[index], field) for one in seen) for index in range(gpus)]
        room = tolerance * (seen[0][0].memory_total if unit > 1 else max(expected))
        for one, value in zip(sorted(expected), sorted(found), strict=False):
            checks.near(name, one / unit, value / unit, room / unit)
    for name, metric in (("busy", contract.CHIP_BUSY), ("compute active", contract.CHIP_COMPUTE_ACTIVE)):
        for value in labelled(page, metric):
            checks.true(name, 0.5 < value <= 1.0, f"{value:.3f} of a program that does nothing else")
    if "operations_a_clock" in own:
        clock = statistics.median(one.clock for readings in seen for one in readings)
        expected_share = own["operations"] / own["step"] / (own["operations_a_clock"] * clock)
        matrix = labelled(page, contract.CHIP_MATRIX_ACTIVE)
        checks.true("matrix units active", len(matrix) == gpus, f"of {len(matrix)} chips")
        for value in matrix:
            checks.near("matrix units active", expected_share, value, 0.15 * expected_share)
    for metric in (contract.CHIP_MEMORY_BANDWIDTH, contract.CHIP_OCCUPANCY, contract.LINK_BYTES):
        print(f"     {metric}: {[round(value, 3) for value in labelled(page, metric)] or 'absent'}")


def compare_shares(checks: Checks, bare: Page, page: Page, gpus: int) -> None:
    """One process is not traced, and its only share is the wait for input. Of several, each rank has its own."""
    prefix = f'{contract.STEP_SHARE}{{{contract.LABEL_PART}="'
    ranks: dict[str, Page] = {}
    for name, value in page.items():
        if name.startswith(prefix):
            part, _, rank = name[len(prefix) : -2].partition(f'",{contract.LABEL_RANK}="')
            ranks.setdefault(rank, {})[part] = value
    for rank, shares in ranks.items():
        print(f"     shares of a step, rank {rank or 0}: { {part: round(value, 3) for part, value in shares.items()} }")
    if gpus == 1:
        checks.true(
            "not traced", all(set(one) <= {contract.PART_INPUT} for one in ranks.values()), f"{len(ranks)} rank"
        )
        return
    checks.true("ranks with shares", len(ranks) == gpus, f"of {len(ranks)} ranks")
    for shares in ranks.values():
        checks.near("sum of the shares", 1.0, sum(shares.values()), 0.01)
    # Synchronising costs a step what is exposed of it, and of what is overlapped at most all: it takes from the rest.
    # What the slowest rank has exposed is no wait for another one.
    lost = 1 - bare["unsynchronised"] / bare["step"]
    exposed = min((one.get(contract.PART_EXPOSED_COMMUNICATION, 2.0) for one in ranks.values()), default=2.0)
    most = max(
        (
            one.get(contract.PART_EXPOSED_COMMUNICATION, 0.0) + one.get(contract.PART_OVERLAPPED_COMMUNICATION, 0.0)
            for one in ranks.values()
        ),
        default=0.0,
    )
    words = f"lost by synchronising {lost:.3f}, exposed {exposed:.3f}, all communication {most:.3f}"
    checks.true("exposed communication", exposed - 0.03 <= lost <= most + 0.03, words)


if __name__ == "__main__":
    sys.exit(main())
