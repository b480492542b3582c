"""Train a small language model with PyTorch, data parallel: one process or many, on CPU or GPU.

The model guesses the next byte of a text from the 32 bytes before it. Its text is the source code of Python's own
standard library.

    python train_torch.py --steps 500
    torchrun --nproc-per-node 2 train_torch.py

SIGUSR1 asks for a checkpoint at the next step; a restart goes on from the newest one.
"""

import argparse
import os
import signal
import sys
import sysconfig
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

CONTEXT = 32


class Text(Dataset):
    """Every position of the text is one sample: the bytes before it, and the byte itself."""

    def __init__(self, limit: int = 4_000_000):
        sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        text = b"".join(path.read_bytes() for path in sources)[:limit]
        self.text = torch.frombuffer(bytearray(text), dtype=torch.uint8)

    def __len__(self):
        return len(self.text) - CONTEXT

    def __getitem__(self, start):
        window = self.text[start : start + CONTEXT + 1].long()
        return window[:-1], window[-1]


def model(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Embedding(256, 32),
        nn.Flatten(),
        nn.Linear(32 * CONTEXT, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 256),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, help="stop after this many steps (default: run until SIGTERM)")
    parser.add_argument("--batch", type=int, default=128, help="samples per process and step")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--save-every", type=float, default=60, help="seconds between checkpoints")
    options = parser.parse_args()
    path = Path(os.environ.get("CHECKPOINT_DIR", "checkpoints")) / "newest.pt"
    path.parent.mkdir(parents=True, exist_ok=True)

    save_now = False

    def on_save(*_):
        nonlocal save_now
        save_now = True

    signal.signal(signal.SIGUSR1, on_save)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))

    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    network = model(options.width).to(device)
    if world > 1:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        network = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)

    step = 0
    if path.exists():
        saved = torch.load(path, map_location=device)
        network.load_state_dict(saved["network"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    if rank == 0:
        print(f"{world} process(es) on {device}, from step {step}", flush=True)

    def save() -> None:
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, path.with_suffix(".tmp"))
        path.with_suffix(".tmp").rename(path)
        print(f"saved step {step}", flush=True)

    torch.manual_seed(step * world + rank)
    loader = DataLoader(Text(), options.batch, shuffle=True, drop_last=True, num_workers=options.workers)
    saved_at = reported_at = time.monotonic()
    reported_step = step
    while True:
        for context, target in loader:
            if step == options.steps:
                if rank == 0:
                    save()
                if world > 1:
                    dist.destroy_process_group()
                sys.exit()
            loss = nn.functional.cross_entropy(network(context.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1

            now = time.monotonic()
            if rank == 0 and now - reported_at >= 2:
                rate = (step - reported_step) * options.batch * world / (now - reported_at)
                print(f"step {step}  loss {loss.item():.3f}  {rate:,.0f} samples/s", flush=True)
                reported_at, reported_step = now, step
            if rank == 0 and (save_now or now - saved_at >= options.save_every):
                save_now = False
                save()
                saved_at = time.monotonic()


if __name__ == "__main__":
    main()
