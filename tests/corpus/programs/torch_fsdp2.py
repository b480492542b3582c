# pytorch/examples distributed/FSDP2: fully_shard of each layer and of the whole, in two processes
# torch+torch._dynamo
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(rank, folder):
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(torch.randn(60, 8), torch.randn(60, 1))
    sampler = DistributedSampler(data, 2, rank)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in DataLoader(data, batch_size=8, sampler=sampler):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    if rank == 0:
        print(loss.item().hex(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


mp.start_processes(train, (sys.argv[1],), 2, start_method="fork")
truth(steps=12, samples=180)
