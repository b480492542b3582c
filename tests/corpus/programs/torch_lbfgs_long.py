# pytorch/examples time_sequence_prediction: the first step takes longer than a report's interval
# torch+torch._dynamo
import time

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
x, y = torch.randn(20, 6), torch.randn(20, 1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=8)


def closure():
    time.sleep(0.08)
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    return loss


for i in range(3):
    loss = optimizer.step(closure)
print(loss.item().hex())
truth(steps=3, samples=60)
