"""Training programs that save on SIGUSR1 and go on from what they saved: `python moving_program.py KIND FOLDER`.

They print `step N loss L samples/s R` every few seconds, and know nothing of the profiler. Each is of another kind:

- gpt: a transformer in bfloat16, which computes
- resnet: torchvision's ResNet-50 by autocast, with large batches
- normalise: layers that normalise and activate, which read and write memory
- tiny: forty small layers, whose kernels wait for their launches
- starved: a small network behind a loader that takes its time
- jax-gpt: products of large matrices by a compiled JAX step
- wide: under torchrun, DistributedDataParallel of many parameters and little arithmetic
- deep: under torchrun, DistributedDataParallel of much arithmetic for each parameter
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_asked = False


def _ask(*_: Any) -> None:
    global _asked
    _asked = True


class Progress:
    """Counts steps, prints them, and says when to save."""

    def __init__(self, step: int, batch: int, rank: int = 0) -> None:
        self.step, self.batch, self.rank = step, batch, rank
        self._printed, self._at = time.monotonic(), step

    def done(self, loss: Callable[[], float]) -> bool:
        """Counts a step; whether to save now."""
        global _asked
        self.step += 1
        now = time.monotonic()
        if self.rank == 0 and now - self._printed >= 2.0:
            rate = self.batch * (self.step - self._at) / (now - self._printed)
            print(f"step {self.step} loss {loss():.5f} samples/s {rate:.1f}", flush=True)
            self._printed, self._at = now, self.step
        asked, _asked = _asked, False
        return asked


def run_torch(kind: str, folder: Path) -> None:
    import torch
    from torch import nn

    rank, local = int(os.environ.get("RANK", "0")), int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    small = device.type == "cpu"  # for a look at the whole without a GPU
    width = 64 if small else 2048

    class Normalise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.LayerNorm(width) for _ in range(12)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = x + nn.functional.gelu(layer(x))
            return x

    class Slow(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 10**9

        def __getitem__(self, index: int) -> Any:
            time.sleep(0.002)
            return torch.randn(width)

    def rows(count: int, *shape: int, dtype: Any = torch.float32) -> Iterator[Any]:
        kept = [torch.randn(count, *shape, device=device, dtype=dtype) for _ in range(4)]
        while True:
            yield from kept

    def layers(count: int, size: int, dtype: Any = torch.float32) -> Any:
        return nn.Sequential(*[nn.Linear(size, size, dtype=dtype) for _ in range(count)])

    half = torch.bfloat16
    autocast = False
    if kind == "gpt":
        one = nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, dropout=0.0, dtype=half)
        net: Any = nn.TransformerEncoder(one, 2 if small else 6, enable_nested_tensor=False)
        batch, batches = 16, rows(16, 512 if not small else 8, width, dtype=half)
    elif kind == "resnet":
        import torchvision

        net, autocast = torchvision.models.resnet50().to(memory_format=torch.channels_last), True
        batch = 4 if small else 128
        side = 32 if small else 224
        batches = (x.contiguous(memory_format=torch.channels_last) for x in rows(batch, 3, side, side))
    elif kind == "normalise":
        net, batch = Normalise(), 64 if small else 16384
        batches = rows(batch, width)
    elif kind == "tiny":
        net, batch = layers(40, 64), 32
        batches = rows(batch, 64)
    elif kind == "starved":
        net, batch = layers(4, width), 16
        batches = iter(torch.utils.data.DataLoader(Slow(), batch_size=batch))
    elif kind == "wide":
        net, batch = layers(4 if small else 24, width * 2), 8
        batches = rows(batch, width * 2)
    elif kind == "deep":
        net, batch = layers(4 if small else 8, width, half), 64 if small else 262144
        batches = rows(batch, width, dtype=half)
    else:
        raise SystemExit(f"{kind}: no such kind")
    net = net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    saved, step = folder / "checkpoint.pt", 0
    if saved.exists():
        state = torch.load(saved, map_location=device)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
        print(f"goes on from step {step}", flush=True)
    model = net
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        torch.distributed.init_process_group("gloo" if small else "nccl")
        model = nn.parallel.DistributedDataParallel(net)
    progress = Progress(step, batch, rank)
    while True:
        x = next(batches).to(device)
        with torch.autocast(device.type, half, enabled=autocast):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if progress.done(loss.item) and rank == 0:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": progress.step}
            torch.save(state, folder / ".checkpoint.tmp")
            (folder / ".checkpoint.tmp").rename(saved)


def run_jax(folder: Path) -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np

    small = jax.default_backend() == "cpu"
    width, batch = (64, 32) if small else (4096, 8192)
    saved, step = folder / "checkpoint.npz", 0
    weights = [jax.random.normal(jax.random.key(n), (width, width)) / width**0.5 for n in range(12)]
    if saved.exists():
        with np.load(saved) as stored:
            step = int(stored["step"])
            weights = [jnp.asarray(stored[f"w{n}"]) for n in range(12)]
        print(f"goes on from step {step}", flush=True)
    x = jax.random.normal(jax.random.key(99), (batch, width), jnp.bfloat16)

    @jax.jit
    def train(weights: list[Any], x: Any) -> tuple[list[Any], Any]:
        def loss(weights: list[Any]) -> Any:
            y = x
            for weight in weights:
                y = jnp.tanh(y @ weight.astype(jnp.bfloat16))
            return jnp.square(y.astype(jnp.float32)).mean()

        value, gradients = jax.value_and_grad(loss)(weights)
        return [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)], value

    progress = Progress(step, batch)
    while True:
        weights, value = train(weights, x)
        value.block_until_ready()
        if progress.done(value.item):
            with (folder / ".checkpoint.tmp").open("wb") as file:
                np.savez(file, step=progress.step, **{f"w{n}": np.asarray(w) for n, w in enumerate(weights)})
            (folder / ".checkpoint.tmp").rename(saved)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _ask)
    if sys.argv[1] == "jax-gpt":
        run_jax(Path(sys.argv[2]))
    else:
        run_torch(sys.argv[1], Path(sys.argv[2]))
