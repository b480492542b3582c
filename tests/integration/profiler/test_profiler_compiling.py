"""The share of time in which real programs compile: each step has another shape."""

from subprocess import Popen
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import PATIENCE, Pod
from tests.integration.profiler.forking import Forked, ForkHost

# Of both the processor time: between their two looks at a clock, a busy machine may do something else for any time.
_TORCH: Final = """
import time, types
import torch
from torch._dynamo.callback import on_compile_end, on_compile_start
from rightpool_agent import compiling
compiling.time = types.SimpleNamespace(perf_counter=time.process_time)
own, since = 0.0, 0.0
def start(*_):
    global since
    since = time.process_time()
def end(*_):
    global own
    own += time.process_time() - since
on_compile_start(start)
on_compile_end(end)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
compiled = torch.compile(net, backend="aot_eager", dynamic=False)
for step in range(20):
    if step == 10:
        before = own
        torch._dynamo.reset()  # and its callbacks
        on_compile_start(start)
        on_compile_end(end)
        compiling.facts(0)  # as each second, whereupon the agent's are set again
    compiled(torch.randn(8 + step % 10, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.2)
print(before, own, compiling._seconds)
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


def compiled(pod: Pod, running: Popen[str] | Forked) -> tuple[list[float], float | None]:
    """What the program prints, and the share of its time in which it compiled; None where the page has none."""
    printed, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, errors
    return [float(word) for word in printed.split()], pod.page(lambda page: page.get(contract.STEPS) == 20).get(
        contract.COMPILE
    )


@pytest.mark.torch
def test_pytorch_that_compiles_each_step(torch_host: ForkHost, pod: Pod) -> None:
    (before, own, found), again = compiled(pod, torch_host.start(pod, _TORCH))
    assert again is not None and 0.0 < again < 1.0
    assert found == pytest.approx(own, rel=0.05) and 0.0 < before < own


@pytest.mark.torch
def test_pytorch_that_compiles_nothing_says_nothing(torch_host: ForkHost, pod: Pod) -> None:
    eager = _TORCH.replace('torch.compile(net, backend="aot_eager", dynamic=False)', "net").replace(
        "torch._dynamo.reset()", "pass"
    )
    assert compiled(pod, torch_host.start(pod, eager))[1] is None


@pytest.mark.jax
def test_jax_that_compiles_each_step(pod: Pod) -> None:
    _, again = compiled(pod, pod.start("-c", _JAX))
    assert again is not None and 0.0 < again < 1.0
