"""The share of time in which real programs compile: each step has another shape."""

from subprocess import Popen
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import PATIENCE, Pod
from tests.integration.profiler.forking import Forked, ForkHost

_TORCH: Final = """
import time
import torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
compiled = torch.compile(net, backend="aot_eager", dynamic=False)
for step in range(20):
    if step == 10:
        torch._dynamo.reset()  # and its callbacks
    compiled(torch.randn(8 + step % 10, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.2)
"""
_JAX: Final = """
import time
import jax, jax.numpy as jnp
step = jax.jit(lambda w, x: w - 0.1 * jax.grad(lambda w: (x @ w).sum())(w))
w = jnp.zeros((8, 1))
for number in range(20):
    w = step(w, jnp.ones((8 + number, 8))).block_until_ready()
    time.sleep(0.05)
"""


def compiled(pod: Pod, running: Popen[str] | Forked) -> float | None:
    """The share of the program's time in which it compiled; None where the page has none."""
    _, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, errors
    return pod.page(lambda page: page.get(contract.STEPS) == 20).get(contract.COMPILE)


@pytest.mark.torch
def test_pytorch_that_compiles_each_step(torch_host: ForkHost, pod: Pod) -> None:
    again = compiled(pod, torch_host.start(pod, _TORCH))
    assert again is not None and 0.0 < again < 1.0


@pytest.mark.torch
def test_pytorch_that_compiles_nothing_says_nothing(torch_host: ForkHost, pod: Pod) -> None:
    eager = _TORCH.replace('torch.compile(net, backend="aot_eager", dynamic=False)', "net").replace(
        "torch._dynamo.reset()", "pass"
    )
    assert compiled(pod, torch_host.start(pod, eager)) is None


@pytest.mark.jax
def test_jax_that_compiles_each_step(pod: Pod) -> None:
    again = compiled(pod, pod.start("-c", _JAX))
    assert again is not None and 0.0 < again < 1.0
