"""Training programs as users of public libraries write them, for `labelled_runs`. Labels are fixed here, those of
`labelled_jax` too.

    python labelled_models.py NAME SECONDS

Each imports its libraries, waits for a letter on its standard input, and trains for so many seconds from its first step
on. Data is made up. Where two classes are given, parts of the step are of either kind.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

if __name__ == "__main__":  # else only the labels are read, and this folder is on no path
    from labelled_loop import CPU, Clock, device, small, train, wait_for_turn

# Name → (classes that are true of it, GPUs, seconds).
MODELS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "resnet50_amp": (("Compute", "MemoryBandwidth"), 1, 18),
    "timm_vit": (("Compute", "MemoryBandwidth"), 1, 18),
    "transformers_gpt2": (("Compute", "MemoryBandwidth"), 1, 18),
    "accelerate_bert_fp32": (("Compute",), 1, 18),
    "lightning_mlp": (("HostBound", "InputBound"), 1, 20),
    "jpeg_workers": (("InputBound",), 1, 22),
    "matmul_tf32": (("Compute",), 1, 17),
    "matmul_fp8": (("Compute",), 1, 17),
    "flash_attention": (("Compute",), 1, 17),
    "layer_norms": (("MemoryBandwidth",), 1, 17),
    "dense_embedding": (("MemoryBandwidth",), 1, 17),
    "gan": (("HostBound",), 1, 20),
    "actor_critic": (("HostBound",), 1, 20),
    "evaluations": (("Compute", "MemoryBandwidth"), 1, 17),
    "accumulation": (("Compute",), 1, 17),
    "compiled_gpt": (("Compute", "MemoryBandwidth"), 1, 20),
    "compiling": (("Unknown", "HostBound"), 1, 32),
    "bursts": (("HostBound",), 1, 24),
    "pageable_copies": (("HostBound", "InputBound"), 1, 20),
    "jax_elementwise": (("MemoryBandwidth",), 1, 20),
    "jax_scan": (("Compute",), 1, 30),
    "jax_flax_bf16": (("Compute",), 1, 26),
    "jax_host_loop": (("HostBound",), 1, 22),
    "jax_starved": (("InputBound", "HostBound"), 1, 20),
}


def pictures(count: int, classes: int = 1000, size: int | None = None) -> Callable[[], tuple[Any, Any]]:
    import torch

    side = size or small(224, 64)
    x = torch.randn(count, 3, side, side, device=device()).to(memory_format=torch.channels_last)
    y = torch.randint(0, classes, (count,), device=device())
    return lambda: (x, y)


def resnet50_amp(clock: Clock) -> None:
    import torch
    from torchvision.models import resnet50

    wait_for_turn()
    net = resnet50().to(device(), memory_format=torch.channels_last)
    train(clock, net, pictures(small(256, 2)))


def timm_vit(clock: Clock) -> None:
    import timm

    wait_for_turn()
    net = timm.create_model("vit_tiny_patch16_224" if CPU else "vit_large_patch16_224", pretrained=False).to(device())
    train(clock, net, pictures(small(64, 2), size=224))


def transformers_gpt2(clock: Clock) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    wait_for_turn()
    width = small(1024, 64)
    config = GPT2Config(n_layer=small(16, 2), n_embd=width, n_head=width // 64, n_positions=1024)
    net = GPT2LMHeadModel(config).to(device())
    tokens = torch.randint(0, config.vocab_size, (small(16, 1), small(1024, 64)), device=device())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    while not clock.over():
        with torch.autocast(device().type, torch.bfloat16):
            loss = net(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def accelerate_bert_fp32(clock: Clock) -> None:
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset
    from transformers import BertConfig, BertForSequenceClassification

    wait_for_turn()
    torch.backends.cuda.matmul.allow_tf32 = False
    accelerator = Accelerator(cpu=CPU)
    shape = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2} if CPU else {}
    net = BertForSequenceClassification(BertConfig(**shape))
    rows = TensorDataset(torch.randint(0, 30000, (4096, small(256, 32))), torch.randint(0, 2, (4096,)))
    loader = DataLoader(rows, batch_size=small(64, 4), shuffle=True)
    net, optimizer, loader = accelerator.prepare(net, torch.optim.AdamW(net.parameters(), lr=1e-5), loader)
    while not clock.over():
        for tokens, labels in loader:
            loss = net(input_ids=tokens, labels=labels).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            if clock.over():
                break


def lightning_mlp(clock: Clock) -> None:
    import pytorch_lightning as lightning
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

        def training_step(self, batch: Any, index: int) -> Any:
            self.trainer.should_stop = clock.over()
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    wait_for_turn()
    rows = TensorDataset(torch.randn(200_000, 64), torch.randint(0, 10, (200_000,)))
    trainer = lightning.Trainer(
        max_epochs=-1, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu" if CPU else "gpu", devices=1, default_root_dir=tempfile.gettempdir(),
    )  # fmt: skip
    trainer.fit(Module(), DataLoader(rows, batch_size=32, shuffle=True))


def jpeg_workers(clock: Clock) -> None:
    import numpy
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    from torchvision import transforms
    from torchvision.models import resnet18

    buffer = io.BytesIO()
    noise = numpy.random.default_rng(0).integers(0, 255, (500, 400, 3), dtype=numpy.uint8)
    Image.fromarray(noise).save(buffer, "JPEG")
    encoded = buffer.getvalue()
    prepare = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])

    class Pictures(Dataset[Any]):
        def __len__(self) -> int:
            return 1_000_000

        def __getitem__(self, index: int) -> Any:
            return prepare(Image.open(io.BytesIO(encoded)).convert("RGB")), index % 10

    wait_for_turn()
    loader = DataLoader(Pictures(), batch_size=small(128, 8), num_workers=4, pin_memory=not CPU, shuffle=True)
    batches: Iterator[Any] = iter(loader)

    def batch() -> tuple[Any, Any]:
        x, y = next(batches)
        return x.to(device(), non_blocking=True), y.to(device(), non_blocking=True)

    train(clock, resnet18(num_classes=10).to(device()), batch, every=1)


def _layers(width: int, count: int, dtype: Any = None) -> Any:
    from torch import nn

    return nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(count)]).to(device(), dtype)


def matmul_tf32(clock: Clock) -> None:
    import torch

    wait_for_turn()
    torch.set_float32_matmul_precision("high")
    width = small(8192, 64)
    y = torch.randint(0, width, (width,), device=device())
    x = torch.randn(width, width, device=device())
    train(clock, _layers(width, 8), lambda: (x, y), every=1, amp=False)


def matmul_fp8(clock: Clock) -> None:
    """Matrix products of 8-bit floats, the weights kept in bfloat16: their gradient is the product's transpose."""
    import torch

    wait_for_turn()
    width = small(16384, 64)
    weight = torch.nn.Parameter(torch.randn(width, width, device=device(), dtype=torch.bfloat16) * 0.01)
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    rows = torch.randn(width, width, device=device())
    if CPU:
        while not clock.over():
            (rows.bfloat16() @ weight).float().mean().backward()
            optimizer.step()
        return
    one = torch.ones((), device=device())
    left = rows.to(torch.float8_e4m3fn)
    while not clock.over():
        right = weight.detach().to(torch.float8_e4m3fn).t()
        for _ in range(6):
            out = torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        weight.grad = out
        optimizer.step()


def flash_attention(clock: Clock) -> None:
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, 16)

        def forward(self, x: Any) -> Any:
            rows, length, width = x.shape
            q, k, v = self.qkv(x).view(rows, length, 3, width // 128, 128).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(rows, length, width)).mean(1)

    wait_for_turn()
    width = small(2048, 128)
    x = torch.randn(small(2, 1), small(32768, 64), width, device=device())
    y = torch.zeros(x.shape[0], dtype=torch.long, device=device())
    train(clock, Attention(width).to(device()), lambda: (x, y), every=1)


def layer_norms(clock: Clock) -> None:
    import torch
    from torch import nn

    wait_for_turn()
    width = small(4096, 64)
    blocks = [nn.Sequential(nn.LayerNorm(width), nn.GELU()) for _ in range(12)]
    net = nn.Sequential(*blocks).to(device())
    x = torch.randn(small(65536, 16), width, device=device())
    y = torch.randint(0, width, (x.shape[0],), device=device())
    train(clock, net, lambda: (x, y), every=1, amp=False)


def dense_embedding(clock: Clock) -> None:
    """A recommender's table whose whole gradient is made and applied at each step."""
    import torch
    from torch import nn

    wait_for_turn()
    rows = small(8_000_000, 1000)
    net = nn.Sequential(nn.EmbeddingBag(rows, 128), nn.Linear(128, 16)).to(device())
    x = torch.randint(0, rows, (4096, 16), device=device())
    y = torch.randint(0, 16, (4096,), device=device())
    train(clock, net, lambda: (x, y), amp=False)


def gan(clock: Clock) -> None:
    import torch
    from torch import nn

    wait_for_turn()
    generator = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 64)).to(device())
    critic = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 1)).to(device())
    makes = torch.optim.Adam(generator.parameters(), lr=1e-4)
    judges = torch.optim.Adam(critic.parameters(), lr=1e-4)
    real = torch.randn(64, 64, device=device())
    loss = nn.BCEWithLogitsLoss()
    yes, no = torch.ones(64, 1, device=device()), torch.zeros(64, 1, device=device())
    while not clock.over():
        fake = generator(torch.randn(64, 32, device=device()))
        judges.zero_grad()
        (loss(critic(real), yes) + loss(critic(fake.detach()), no)).backward()
        judges.step()
        makes.zero_grad()
        loss(critic(fake), yes).backward()
        makes.step()


def actor_critic(clock: Clock) -> None:
    """An agent that plays on the host, one action at a time, and learns after 64 of them."""
    import math
    import random

    import torch
    from torch import nn

    wait_for_turn()
    policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).to(device())
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    state = [0.0, 0.0, 0.05, 0.0]
    while not clock.over():
        kept = []
        for _ in range(64):
            chances = torch.distributions.Categorical(logits=policy(torch.tensor(state, device=device())))
            action = chances.sample()
            force = 10.0 if action.item() else -10.0
            pull = (force + 0.05 * state[3] ** 2 * math.sin(state[2])) / 1.1
            turn = (9.8 * math.sin(state[2]) - math.cos(state[2]) * pull) / 0.6
            state = [
                state[0] + 0.02 * state[1],
                state[1] + 0.02 * pull,
                state[2] + 0.02 * state[3],
                state[3] + 0.02 * turn,
            ]
            if abs(state[2]) > 0.2:
                state = [random.uniform(-0.05, 0.05) for _ in range(4)]
            kept.append(chances.log_prob(action))
        optimizer.zero_grad()
        (-torch.stack(kept).mean()).backward()
        optimizer.step()


def _gpt(width: int, layers: int) -> Any:
    from torch import nn

    one = nn.TransformerEncoderLayer(
        width, max(width // 64, 1), 4 * width, batch_first=True, dropout=0.0, norm_first=True
    )

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.TransformerEncoder(one, layers, enable_nested_tensor=False)
            self.head = nn.Linear(width, 1000)

        def forward(self, x: Any) -> Any:
            return self.head(self.layers(x).mean(1))

    return Gpt().to(device())


def _sequences() -> Callable[[], tuple[Any, Any]]:
    import torch

    x = torch.randn(small(16, 1), small(1024, 16), small(2048, 64), device=device())
    y = torch.randint(0, 1000, (x.shape[0],), device=device())
    return lambda: (x, y)


def evaluations(clock: Clock) -> None:
    """Twenty steps of training, then as many batches without gradients, again and again."""
    import torch
    from torch.nn import functional

    wait_for_turn()
    net, batch = _gpt(small(2048, 64), small(8, 1)), _sequences()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-5)
    while not clock.over():
        net.train()
        for _ in range(20):
            x, y = batch()
            with torch.autocast(device().type, torch.bfloat16):
                loss = functional.cross_entropy(net(x).float(), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        net.eval()
        with torch.no_grad(), torch.autocast(device().type, torch.bfloat16):
            sum(functional.cross_entropy(net(batch()[0]).float(), y).item() for _ in range(20))


def accumulation(clock: Clock) -> None:
    import torch

    wait_for_turn()
    width = small(8192, 64)
    net = _layers(width, 8, torch.bfloat16)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-6)
    x = torch.randn(small(4096, 8), width, device=device(), dtype=torch.bfloat16)
    while not clock.over():
        for _ in range(16):
            (net(x).float().square().mean() / 16).backward()
        optimizer.step()
        optimizer.zero_grad()


def compiled_gpt(clock: Clock) -> None:
    import torch

    wait_for_turn()
    net, batch = torch.compile(_gpt(small(2048, 64), small(8, 1))), _sequences()
    with torch.autocast(device().type, torch.bfloat16):
        net(batch()[0]).sum().backward()
    train(clock, net, batch, every=2)


def compiling(clock: Clock) -> None:
    """Each step has another shape, and compiles anew."""
    import torch

    wait_for_turn()
    torch._dynamo.config.recompile_limit = 10_000
    torch._dynamo.config.accumulated_recompile_limit = 100_000
    net = torch.compile(_gpt(256, 6), dynamic=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    length = 16
    while not clock.over():
        net(torch.randn(4, length, 256, device=device())).sum().backward()
        optimizer.step()
        length += 8


def bursts(clock: Clock) -> None:
    """A notebook: half a second of steps, then five seconds of looking at them."""
    import torch

    wait_for_turn()
    width = small(4096, 64)
    net = _layers(width, 4, torch.bfloat16)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    x = torch.randn(width, width, device=device(), dtype=torch.bfloat16)
    while not clock.over():
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            net(x).float().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        time.sleep(5)


def pageable_copies(clock: Clock) -> None:
    """Each batch is copied from memory that is not pinned, and little is done with it."""
    import torch
    from torch import nn

    wait_for_turn()
    net = nn.Linear(1024, 10).to(device())
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    x = torch.randn(small(262_144, 64), 1024)
    y = torch.randint(0, 10, (x.shape[0],))
    while not clock.over():
        nn.functional.cross_entropy(net(x.to(device())), y.to(device())).backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    globals()[sys.argv[1]](Clock(float(sys.argv[2])))
