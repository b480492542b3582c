# the ZeroRedundancyOptimizer: it steps an optimizer of its own in each process; DDP, gradients of two passes
# torch+torch._dynamo
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def train(rank, folder):
    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    for step in range(15):
        with model.no_sync():
            model(torch.randn(8, 8)).square().mean().backward()
        loss = model(torch.randn(8, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        print(loss.item().hex(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


mp.start_processes(train, (sys.argv[1],), 2, start_method="fork")
truth(steps=15, samples=15 * 32)
