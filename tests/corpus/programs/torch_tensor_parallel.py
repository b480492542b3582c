# pytorch/examples distributed/tensor_parallelism: every rank is given the same rows
# torch+torch._dynamo
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Toy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj = torch.nn.Linear(10, 32)
        self.relu = torch.nn.ReLU()
        self.out_proj = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.out_proj(self.relu(self.in_proj(x)))


def train(rank):
    dist.init_process_group("gloo", f"file://{sys.argv[1]}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(0)
    plan = {"in_proj": ColwiseParallel(), "out_proj": RowwiseParallel()}
    net = parallelize_module(Toy(), init_device_mesh("cpu", (2,)), plan)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.25, foreach=True)
    for i in range(10):
        torch.manual_seed(i)
        loss = net(torch.rand(20, 10)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        print(loss.item().hex(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


children = []
for rank in range(2):
    pid = os.fork()
    if pid == 0:
        train(rank)
        raise SystemExit(0)
    children.append(pid)
assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0]
truth(steps=10, samples=200)
