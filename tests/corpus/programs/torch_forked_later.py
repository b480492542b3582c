# a child that is forked after its parent has trained trains on (a sweep that warms up once, hogwild)
# torch+torch._dynamo quick
import multiprocessing

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def train(steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(steps):
        x = torch.randn(6, 4)
        optimizer.zero_grad()
        loss = ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
    return float(loss.detach()).hex()


print(train(12))
child = multiprocessing.get_context("fork").Process(target=train, args=(15,))
child.start()
child.join()
print(child.exitcode)
truth(steps=27, samples=162)
