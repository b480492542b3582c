# DDP by processes that are told their rank by argument: no launcher's environment
# torch+torch._dynamo
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.manual_seed(0)


def train(rank):
    dist.init_process_group("gloo", f"file://{sys.argv[1]}/rendezvous", rank=rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.ones(64, 4), torch.ones(64, 1))
    sampler = DistributedSampler(data, 2, rank)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=4, sampler=sampler):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
    if rank == 0:
        print(loss.item().hex(), flush=True)
    dist.destroy_process_group()


children = []
for rank in range(2):
    pid = os.fork()
    if pid == 0:
        train(rank)
        raise SystemExit(0)
    children.append(pid)
assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0]
truth(steps=24, samples=192)
