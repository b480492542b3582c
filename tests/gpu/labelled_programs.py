"""Small programs whose bottleneck is known by how they are made, for `labelled_runs`. Labels are fixed here.

    python labelled_programs.py NAME SECONDS

Each waits as those of `labelled_models` do, trains for so many seconds from its first steps on, and ends. Imports
nothing but torch, and jax where its name says so.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

if __name__ == "__main__":  # else only the labels are read, and this folder is on no path
    from labelled_loop import wait_for_turn

# Name → (classes that are true of it, GPUs, seconds).
PROGRAMS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "matmul_bf16": (("Compute",), 1, 17),
    "gpt_fp32": (("Compute",), 1, 17),
    "gpt_bf16": (("Compute", "MemoryBandwidth"), 1, 17),
    "matmul_fp64": (("Compute",), 1, 17),
    "elementwise": (("MemoryBandwidth",), 1, 17),
    "big_optimizer": (("MemoryBandwidth",), 1, 17),
    "starved_loader": (("InputBound",), 1, 18),
    "slow_batches": (("InputBound",), 1, 34),
    "tiny_batches": (("HostBound",), 1, 20),
    "host_work": (("HostBound",), 1, 20),
    "copy_loop": (("HostBound",), 1, 17),
    "full_memory": (("MemoryCapacity",), 1, 17),
    "no_optimizer": (("Compute",), 1, 17),
    "hang": (("Idle",), 1, 26),
    "jax_matmul": (("Compute",), 1, 20),
    "jax_tiny": (("HostBound",), 1, 20),
    "ddp_even": (("Compute",), 2, 22),
    "ddp_straggler": (("Straggler",), 2, 22),
    "ddp_starved": (("InputBound",), 2, 22),
    "ddp_no_peer_access": (("CommunicationBound",), 2, 22),
    "ddp_gradients": (("CommunicationBound",), 2, 22),
    "fsdp_no_peer_access": (("CommunicationBound",), 2, 22),
    "jax_mesh": (("Compute",), 2, 22),
    "fsdp_tiny": (("CommunicationBound", "HostBound"), 2, 22),
}


def main() -> None:
    name, seconds = sys.argv[1], float(sys.argv[2])
    if name.startswith("jax_"):
        run_jax(name, seconds)
    else:
        run_torch(name, seconds)


def run_torch(name: str, seconds: float) -> None:
    import torch
    from torch import nn

    wait_for_turn()
    until: float | None = None
    rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    distributed = "WORLD_SIZE" in os.environ
    if cuda:
        torch.cuda.set_device(device)
    if distributed:
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
    size = 4096 if cuda else 64

    class Rows(torch.utils.data.Dataset[Any]):
        """Rows of `width` numbers, each of which takes `wait` seconds to read."""

        def __init__(self, width: int, wait: float) -> None:
            self.width, self.wait = width, wait

        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, index: int) -> Any:
            time.sleep(self.wait)
            return torch.randn(self.width)

    def loader(width: int, batch: int, wait: float = 0.0) -> Any:
        return iter(torch.utils.data.DataLoader(Rows(width, wait), batch_size=batch))

    class Gpt(nn.Module):
        def __init__(self, width: int, layers: int) -> None:
            super().__init__()
            one = nn.TransformerEncoderLayer(width, width // 64, 4 * width, batch_first=True, dropout=0.0)
            self.layers = nn.TransformerEncoder(one, layers, enable_nested_tensor=False)

        def forward(self, x: Any) -> Any:
            return self.layers(x)

    def mlp(width: int, layers: int, dtype: Any = torch.float32) -> Any:
        return nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)]).to(device, dtype)

    def over() -> bool:
        """All ranks end at the same step. Time counts from the first call: weights take seconds to make."""
        nonlocal until
        until = until or time.monotonic() + seconds
        mine = torch.tensor(float(time.monotonic() > until), device=device)
        if distributed:
            torch.distributed.all_reduce(mine)
        return bool(mine.item() > 0)

    def train(net: Any, batch: Any, *, every: int = 10, optimizer: Any = None, amp: bool = False) -> None:
        """`batch`: makes one. `every`: steps between two looks at the clock."""
        optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=1e-6)
        steps = 0
        while True:
            x = batch()
            with torch.autocast(device.type, torch.bfloat16, enabled=amp):
                loss = net(x).float().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if steps % every == 0 and over():
                break

    def fixed(*shape: int, dtype: Any = torch.float32) -> Any:
        x = torch.randn(*shape, device=device, dtype=dtype)
        return lambda: x

    def wrapped(net: Any) -> Any:
        return nn.parallel.DistributedDataParallel(net, device_ids=[local] if cuda else None)

    if name == "matmul_bf16":
        train(mlp(2 * size, 8, torch.bfloat16), fixed(2 * size, 2 * size, dtype=torch.bfloat16), every=2)
    elif name == "gpt_fp32":
        torch.backends.cuda.matmul.allow_tf32 = False
        train(Gpt(1024 if cuda else 64, 8).to(device), fixed(16, 1024 if cuda else 16, 1024 if cuda else 64), every=1)
    elif name == "gpt_bf16":
        train(Gpt(2048 if cuda else 64, 8).to(device), fixed(16, 1024 if cuda else 16, 2048 if cuda else 64), amp=True)
    elif name == "matmul_fp64":
        train(mlp(size, 8, torch.float64), fixed(size, size, dtype=torch.float64), every=2)
    elif name == "elementwise":
        scale = nn.Parameter(torch.ones(1, device=device))
        x = torch.randn(64 * size * 1024 if cuda else size, device=device)
        optimizer = torch.optim.SGD([scale], lr=1e-6)
        steps = 0
        while True:
            y = x
            with torch.no_grad():
                for _ in range(20):
                    y = y * 1.0001
            scale.grad = y[:1].clone()
            optimizer.step()
            steps += 1
            if steps % 10 == 0 and over():
                break
    elif name == "big_optimizer":
        net = mlp(2 * size, 12)
        train(net, fixed(4, 2 * size), optimizer=torch.optim.Adam(net.parameters(), lr=1e-6, fused=cuda))
    elif name == "starved_loader":
        rows = loader(1024, 32, 0.002)
        train(mlp(1024, 4), lambda: next(rows).to(device), every=1)
    elif name == "slow_batches":
        rows = loader(1024, 4, 0.75)
        train(mlp(1024, 4), lambda: next(rows).to(device), every=1)
    elif name in ("tiny_batches", "full_memory"):
        if name == "full_memory" and cuda:
            free, total = torch.cuda.mem_get_info()
            held = torch.empty(int(free - 0.02 * total), dtype=torch.uint8, device=device)
            held[0] = 1
        train(mlp(256, 40), fixed(8, 256), every=50)
    elif name == "host_work":
        net, x = mlp(1024, 4), fixed(1024, 1024)

        def thinking() -> Any:
            sum(number * number for number in range(200_000))
            return x()

        train(net, thinking)
    elif name == "copy_loop":
        host = torch.randn(256 * size * 64 if cuda else size, pin_memory=cuda)
        weight = nn.Parameter(torch.ones(8, device=device))
        optimizer = torch.optim.SGD([weight], lr=1e-6)
        steps = 0
        while True:
            there = host.to(device, non_blocking=True)
            weight.grad = there[:8].clone()
            optimizer.step()
            steps += 1
            if steps % 10 == 0 and over():
                break
    elif name == "no_optimizer":
        net, x = mlp(size, 8), fixed(size, size)
        while not over():
            net(x()).mean().backward()
    elif name == "hang":
        trains = seconds / 3
        until_then = time.monotonic() + trains
        net, x = mlp(1024, 4), fixed(1024, 1024)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
        while time.monotonic() < until_then:
            net(x()).mean().backward()
            optimizer.step()
            if cuda:
                torch.cuda.synchronize()
        time.sleep(seconds - trains)
    elif name in ("ddp_even", "ddp_straggler"):
        net = wrapped(mlp(size, 8, torch.bfloat16))
        x = fixed(2 * size, size, dtype=torch.bfloat16)
        behind = 2 if name == "ddp_straggler" and rank == 1 else 0

        def work() -> Any:
            with torch.no_grad():
                for _ in range(behind * 3):
                    net.module(x())
            return x()

        train(net, work)
    elif name == "ddp_starved":
        rows = loader(1024, 32, 0.002)
        train(wrapped(mlp(1024, 4)), lambda: next(rows).to(device), every=1)
    elif name in ("ddp_no_peer_access", "ddp_gradients"):
        train(wrapped(mlp(2 * size, 8)), fixed(16, 2 * size))
    elif name == "fsdp_tiny":
        from torch.distributed.fsdp import FullyShardedDataParallel

        train(FullyShardedDataParallel(mlp(1024, 24)), fixed(4, 1024))
    elif name == "fsdp_no_peer_access":
        from torch.distributed.fsdp import FullyShardedDataParallel

        train(FullyShardedDataParallel(mlp(2 * size, 8)), fixed(16, 2 * size), every=2)
    else:
        raise SystemExit(f"{name}: unknown")
    if distributed:
        torch.distributed.destroy_process_group()


def run_jax(name: str, seconds: float) -> None:
    import jax
    import jax.numpy as jnp

    wait_for_turn()
    large = name in ("jax_matmul", "jax_mesh")
    width, rows, layers = (4096, 8192, 8) if large else (64, 8, 30)
    dtype = jnp.bfloat16 if large else jnp.float32

    def loss(weights: Any, x: Any) -> Any:
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return x.astype(jnp.float32).mean()

    @jax.jit
    def step(weights: Any, x: Any) -> Any:
        return [one - 1e-4 * gradient for one, gradient in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    keys = jax.random.split(jax.random.key(0), layers + 1)
    weights = [jax.random.normal(key, (width, width), dtype) * 0.02 for key in keys[:-1]]
    x = jax.random.normal(keys[-1], (rows, width), dtype)
    if name == "jax_mesh":
        mesh = jax.sharding.Mesh(jax.devices(), ("data",))
        placed = jax.sharding.NamedSharding
        weights = jax.device_put(weights, placed(mesh, jax.sharding.PartitionSpec()))
        x = jax.device_put(jnp.concatenate([x] * len(jax.devices())), placed(mesh, jax.sharding.PartitionSpec("data")))
    steps = 0
    jax.block_until_ready(step(weights, x))
    until = time.monotonic() + seconds
    while steps % 10 or time.monotonic() < until:
        weights = step(weights, x)
        steps += 1
        if steps % 10 == 0:
            jax.block_until_ready(weights)


if __name__ == "__main__":
    main()
