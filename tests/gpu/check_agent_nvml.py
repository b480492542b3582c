"""Runs a PyTorch program on this machine's NVIDIA GPUs with the agent and a sidecar, and compares what they say.

    PYTHONPATH=operator:profiler_sidecar python tests/gpu/check_agent_nvml.py [--gpus 1] [--seconds 45]

Needs torch with CUDA, and `pynvml` (nvidia-ml-py) for the chip counters. Prints the page of /metrics, then one line per
quantity: what the program measured of itself, what the page says, and whether they agree. Exits 1 if they do not.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from rightpool import contract

ROOT = Path(__file__).resolve().parents[2]

SIDECAR = """
import asyncio, dataclasses, os
from rightpool_profiler.sidecar import Settings, run
asyncio.run(run(dataclasses.replace(Settings.read(os.environ), port=int(os.environ["PORT"]))))
"""

PROGRAM = """
import json, os, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

class Noise(Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, i): return torch.ones(4096)

rank, local, world = (int(os.environ.get(n, d)) for n, d in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")))
torch.cuda.set_device(local)
net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(16)]).cuda().bfloat16()
if world > 1:
    dist.init_process_group("nccl")
    net = DistributedDataParallel(net, device_ids=[local])
optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
began, steps, first = time.time(), 0, None
for batch in DataLoader(Noise(), batch_size=256, num_workers=2):
    x = batch.cuda(non_blocking=True).bfloat16()
    for _ in range(6):
        x = x + net(x)  # enough work for a step to be the GPU's
    x.float().mean().backward()
    optimizer.step(); optimizer.zero_grad()
    steps += 1
    if steps == 10:
        torch.cuda.synchronize(); first = time.time()
    if steps % 10 == 0:
        torch.cuda.synchronize()
        # All ranks must stop at the same step.
        over = torch.tensor(float(time.time() - began > float(sys.argv[1])), device="cuda")
        if world > 1: dist.all_reduce(over)
        if over.item() > 0: break
step = (time.time() - first) / (steps - 10)
if rank == 0:
    print(json.dumps({"steps": steps, "samples": steps * 256 * world, "step": step,
                      "memory": torch.cuda.max_memory_reserved()}), flush=True)
if world > 1: dist.destroy_process_group()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=45)
    options = parser.parse_args()
    shared = Path(tempfile.mkdtemp(prefix="rightpool-", dir="/tmp"))
    port = free_port()
    source = os.pathsep.join((str(ROOT / "operator"), str(ROOT / "profiler_sidecar")))
    base = {**os.environ, contract.ENV_SHARED_DIR: str(shared)}
    ours = {**base, "PYTHONPATH": source, "PORT": str(port), contract.ENV_CHIPS: str(options.gpus)}
    subprocess.run([sys.executable, "-m", "rightpool_profiler", "install"], env=ours, check=True)
    if not (shared / "agent" / "rightpool_agent" / "pynvml.py").exists():
        print("no pynvml here: chip counters will be absent")
    sidecar = subprocess.Popen([sys.executable, "-c", SIDECAR], env=ours)
    script = shared / "program.py"
    script.write_text(PROGRAM)
    launch = ["-m", "torch.distributed.run", f"--nproc-per-node={options.gpus}"] if options.gpus > 1 else []
    try:
        command = [sys.executable, *launch, str(script), str(options.seconds)]
        bare = subprocess.run([*command[:-1], "20"], env=base, capture_output=True, text=True, check=True)
        theirs = {**base, "PYTHONPATH": str(shared / "agent"), contract.ENV_TRACE: "Auto"}
        program = subprocess.Popen(command, env=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        page = ""
        while program.poll() is None:
            time.sleep(1)
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{contract.PATH_METRICS}", timeout=5) as answer:
                    page = answer.read().decode()
            except OSError:
                pass
        out, err = program.communicate()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{contract.PATH_METRICS}", timeout=5) as answer:
            last = answer.read().decode()
    finally:
        sidecar.terminate()
        sidecar.wait(5)
        shutil.rmtree(shared, ignore_errors=True)
    print(page)
    print("stderr of the program:", err[-2000:] or "(nothing)", f"exit code {program.returncode}", sep="\n")
    return compare(json.loads(bare.stdout), json.loads(out), numbers(page), numbers(last), options.gpus)


def numbers(page: str) -> dict[str, float]:
    rows = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def compare(
    bare: dict[str, float], own: dict[str, float], page: dict[str, float], last: dict[str, float], gpus: int
) -> int:
    """Print the comparison; the exit code."""
    mean = last[f"{contract.STEP_SECONDS}_sum"] / last[f"{contract.STEP_SECONDS}_count"]
    shares = {name: value for name, value in page.items() if name.startswith(contract.STEP_SHARE)}
    checks = [
        ("steps", own["steps"], last.get(contract.STEPS, 0), 0.2 if gpus > 1 else 0.0),
        ("samples", own["samples"], last.get(contract.SAMPLES, 0), 0.02),
        ("step time (s)", own["step"], mean, 0.15),
        ("step time, bare (s)", bare["step"], own["step"], 0.05),
        *([("sum of shares", 1.0, sum(shares.values()), 0.01)] if gpus > 1 else []),  # one process is not traced
        ("chips", gpus, len([n for n in page if n.startswith(f"{contract.CHIP_BUSY}{{")]), 0.0),
    ]
    worst = 0
    for name, expected, found, tolerance in checks:
        agree = abs(found - expected) <= tolerance * abs(expected)
        worst = max(worst, not agree)
        print(f"{'ok ' if agree else 'BAD'}  {name:22} program {expected:14.5g}   page {found:14.5g}")
    for name in (
        contract.CHIP_MEMORY_USED,
        contract.CHIP_BUSY,
        contract.CHIP_COMPUTE_ACTIVE,
        contract.CHIP_MATRIX_ACTIVE,
    ):
        print(f"     {name}: {[value for key, value in page.items() if key.startswith(name + '{')] or 'absent'}")
    print(f"     memory reserved by the program on its chip: {own['memory']:.4g}")
    return worst


if __name__ == "__main__":
    sys.exit(main())
