"""A training program for pods: a regression by torchrun, of as many processes as it is started with.

It saves on SIGUSR1 and every few seconds, and goes on from what it saved. What it prints is what the JAX example does.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIZE, BATCH = 64, 1024
PAUSE = 0.05  # seconds: that it is little to do leaves the machine to others
SAVE_EVERY = 7.0  # a save counts that stays the newest for some seconds

asked = False


def ask(*_: Any) -> None:
    global asked
    asked = True


def main() -> None:
    global asked
    signal.signal(signal.SIGUSR1, ask)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    path = Path(os.environ["CHECKPOINT_DIR"]) / "state.pt"
    torch.manual_seed(0)
    truth, net, step = torch.randn(SIZE, 1), nn.Linear(SIZE, 1), 0
    if path.exists():
        state = torch.load(path)
        step = state["step"]
        net.load_state_dict(state["net"])
    trained = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(trained.parameters(), lr=3e-4)
    if rank == 0:
        print(f"{world} process(es), {world} device(s), from step {step}", flush=True)
    saved_at = printed_at = time.monotonic()
    while True:
        torch.manual_seed(step * world + rank)
        batch = torch.randn(BATCH, SIZE)
        loss = (trained(batch) - batch @ truth).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        now = time.monotonic()
        if rank == 0 and now - printed_at >= 1:
            print(f"step {step}  loss {float(loss):.3f}", flush=True)
            printed_at = now
        if rank == 0 and (asked or now - saved_at >= SAVE_EVERY):
            asked = False
            torch.save({"step": step, "net": net.state_dict()}, path.with_suffix(".tmp"))
            path.with_suffix(".tmp").rename(path)
            print(f"saved step {step}", flush=True)
            saved_at = now
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
