# pytorch/examples distributed/FSDP2: the optimizer lives in a function, and is gone before the program ends
# torch+torch._dynamo
import time

import torch


def main():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(10):
        time.sleep(0.05)
        loss = net(torch.randn(32, 6)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item().hex())


main()
truth(steps=10, samples=320)
