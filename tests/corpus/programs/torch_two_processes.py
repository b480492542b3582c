# pytorch/examples mnist_hogwild: two processes of one pod share a model, each with its own steps
# torch+torch._dynamo quick
import os

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
net.share_memory()


def train():
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for epoch in range(4):
        for x, y in DataLoader(TensorDataset(torch.randn(60, 4), torch.randn(60, 1)), batch_size=4):
            optimizer.zero_grad()
            ((net(x) - y) ** 2).mean().backward()
            optimizer.step()


children = []
for i in range(2):
    pid = os.fork()
    if pid == 0:
        train()
        raise SystemExit(0)
    children.append(pid)
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
truth(steps=120, samples=480)
