# pytorch/examples mnist_hogwild: two processes of one pod share a model, each with its own steps
# torch+torch._dynamo quick
import torch
import torch.multiprocessing as mp
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


context = mp.get_context("fork")
children = [context.Process(target=train) for _ in range(2)]
for child in children:
    child.start()
for child in children:
    child.join()
print([child.exitcode for child in children])
truth(steps=120, samples=480)
