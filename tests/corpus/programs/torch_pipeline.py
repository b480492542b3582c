# pytorch/examples distributed/pipeline: each of two processes has a stage, and passes are made by microbatches
# torch+torch._dynamo
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, folder):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    dist.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(rank)
    part = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh())
    stage = PipelineStage(part, rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.Adam(part.parameters())
    for step in range(12):
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(torch.randn(16, 8))
        else:
            schedule.step(target=torch.randn(16, 8), losses=losses)
        optimizer.step()
    if rank == 1:
        print(sum(losses).item().hex(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


mp.start_processes(train, (sys.argv[1],), 2, start_method="fork")
truth(steps=12, samples=192)
