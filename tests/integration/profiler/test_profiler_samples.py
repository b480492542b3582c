"""Samples of real programs in which not all that is computed with is a sample of its own."""

from __future__ import annotations

from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import PATIENCE, Pod, free_port
from tests.integration.profiler.forking import ForkHost

pytestmark = pytest.mark.torch

_SKIPS: Final = """
import sys, torch
from torch.utils.data import DataLoader, TensorDataset

class Full(torch.autograd.Function):
    @staticmethod
    def forward(context, x, where):
        context.where = where
        if where == "forward": raise torch.OutOfMemoryError("CUDA out of memory")
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        if context.where == "backward": raise torch.OutOfMemoryError("CUDA out of memory")
        return gradient, None

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 1)
    def forward(self, x, where):
        return Full.apply(self.inner(x), where)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
rows = torch.randn(8 * 60, 4)
batches = DataLoader(TensorDataset(rows), batch_size=8) if LOADER else [[one] for one in rows.split(8)]
for number, (batch,) in enumerate(batches):
    try:
        net(batch, WHERE if number % 3 == 1 else "").sum().backward()
    except torch.OutOfMemoryError:
        optimizer.zero_grad()
    else:
        optimizer.step()
        optimizer.zero_grad()
print("done", flush=True)
sys.stdin.read()
"""
_PIPELINE: Final = """
import os, sys, torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
dist.init_process_group("gloo")
rank = dist.get_rank()
module = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(1 + 2 * rank)])
stage = PipelineStage(module, rank, 2, torch.device("cpu"))
schedule = ScheduleGPipe(stage, 2, loss_fn=torch.nn.functional.mse_loss)
optimizer = torch.optim.AdamW(module.parameters())
for _ in range(40):
    schedule.step(torch.randn(8, 16)) if rank == 0 else schedule.step(target=torch.randn(8, 16), losses=[])
    optimizer.step()
    optimizer.zero_grad()
print("done", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("loader", [True, False])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_batches_that_were_skipped_are_no_samples(pod: Pod, torch_host: ForkHost, where: str, loader: bool) -> None:
    """Without memory for a batch, some programs go on with the next one."""
    source = _SKIPS.replace("WHERE", repr(where)).replace("LOADER", str(loader))
    program = torch_host.start(pod, source)
    assert program.stdout.readline() == "done\n"
    page = pod.caught_up()
    assert (page[contract.STEPS], page[contract.SAMPLES]) == (40, 40 * 8)


def test_stages_of_a_pipeline_have_the_same_samples(pod: Pod, torch_host: ForkHost) -> None:
    launcher = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [torch_host.start(pod, _PIPELINE, RANK=str(rank), **launcher) for rank in (0, 1)]
    for one in ranks:
        assert one.stdout.readline() == "done\n", one.communicate(PATIENCE)
    page = pod.caught_up()
    assert (page[contract.STEPS], page[contract.SAMPLES], page[contract.STEP_SAMPLES]) == (40, 40 * 8, 8)
