"""Programs for all GPUs of a machine, with PyTorch and with JAX: loader, precision and an all-reduce slow them."""

from __future__ import annotations

from typing import Final

from benchmarks.bench.history import BETTER, WORSE, Commit, History

# Read by both: batches that are kept once a store has given them.
_DATA: Final = """\
import time

import numpy

BATCHES = 8
LATENCY = 0.015  # seconds that the store takes for a batch


class Samples:
    def __init__(self, size):
        self.size = size
        self.kept = {}

    def __len__(self):
        return 1 << 30

    def __getitem__(self, number):
        batch = number % BATCHES
        if batch not in self.kept:
            self.kept[batch] = self.fetch(batch)
        return self.kept[batch]

    def fetch(self, batch):
        time.sleep(LATENCY)
        draw = numpy.random.default_rng(batch)
        return draw.random((self.size, 1024), numpy.float32), numpy.ones((self.size, 1), numpy.float32)
"""
_KEPT: Final = """\
        if batch not in self.kept:
            self.kept[batch] = self.fetch(batch)
        return self.kept[batch]
"""
_FETCHED: Final = "        return self.fetch(batch)\n"

_TORCH: Final = """\
import os

import torch
from torch.nn.parallel import DistributedDataParallel

from data import Samples

torch.distributed.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
layers = [torch.nn.Linear(4096, 4096) for _ in range(8)]
net = torch.nn.Sequential(torch.nn.Linear(1024, 4096), *layers, torch.nn.Linear(4096, 1)).cuda()
net = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
for x, y in torch.utils.data.DataLoader(Samples(2048), batch_size=None):
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.mse_loss(net(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_JAX: Final = """\
import jax
import jax.numpy as jnp
import torch
from jax.sharding import PartitionSpec as P

from data import Samples

TYPE = jnp.bfloat16
mesh = jax.sharding.Mesh(jax.devices(), ("data",))
sizes = [1024] + [4096] * 9 + [1]
keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
weights = [jax.random.normal(key, size) / 64 for key, size in zip(keys, zip(sizes, sizes[1:]))]


def loss_of(weights, x, y):
    for weight in weights:
        x = jnp.tanh(x.astype(TYPE) @ weight.astype(TYPE))
    return jnp.mean((x - y) ** 2)


def step(weights, x, y):
    own = jax.grad(loss_of)(jax.lax.pcast(weights, "data", to="varying"), x, y)
    grads = jax.lax.pmean(own, "data")
    return [weight - 1e-4 * grad for weight, grad in zip(weights, grads)]


step = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P()))
for x, y in torch.utils.data.DataLoader(Samples(2048 * jax.device_count()), batch_size=None):
    weights = step(weights, x.numpy(), y.numpy())
"""

_LOADER: Final = (
    Commit("Keep no sample in memory", "data.py", _KEPT, _FETCHED, WORSE, "waiting for input went from"),
    Commit("Say what the data are", "data.py", "import time\n", '"""Samples from a store."""\n\nimport time\n'),
    Commit("Keep samples again", "data.py", _FETCHED, _KEPT, BETTER, "waiting for input went from"),
)

TORCH_ON_CHIPS: Final = History(
    {"data.py": _DATA, "train.py": _TORCH},
    (
        *_LOADER,
        Commit(
            "Average the weights, too",
            "train.py",
            "    optimizer.step()\n",
            "    optimizer.step()\n"
            "    for weight in net.parameters():\n"
            "        torch.distributed.all_reduce(weight.data)\n"
            "        weight.data /= torch.distributed.get_world_size()\n",
            WORSE,
            "communicating alone",
        ),
        Commit("Say what is trained", "train.py", "import os\n", '"""A small net."""\n\nimport os\n'),
        Commit(
            "Train in single precision", "train.py", 'cuda", torch.bfloat16)', 'cuda", enabled=False)', WORSE, "fp32"
        ),
    ),
    ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=gpu", "train.py"),
)
JAX_ON_CHIPS: Final = History(
    {"data.py": _DATA, "train.py": _JAX},
    (
        *_LOADER,
        Commit(
            "Scale by the gradients' second moment",
            "train.py",
            "    return [weight - 1e-4 * grad for weight, grad in zip(weights, grads)]\n",
            '    squares = jax.lax.pmean([grad**2 for grad in own], "data")\n'
            "    scaled = [grad / jnp.sqrt(square + 1e-6) for grad, square in zip(grads, squares)]\n"
            "    return [weight - 1e-4 * grad for weight, grad in zip(weights, scaled)]\n",
            WORSE,
            "working on the chip",
        ),
        Commit("Say what is trained", "train.py", "import jax\n", '"""A small net."""\n\nimport jax\n'),
        Commit("Train in single precision", "train.py", "TYPE = jnp.bfloat16", "TYPE = jnp.float32", WORSE, "tf32"),
    ),
    ("train.py",),
)
