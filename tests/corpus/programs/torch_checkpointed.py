# activation checkpointing: forward passes are made again in the backward pass
# torch+torch._dynamo
import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU()) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


net = Net()
optimizer = torch.optim.Adam(net.parameters())
for i in range(14):
    optimizer.zero_grad()
    loss = net(torch.randn(9, 6)).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
truth(steps=14, samples=126)
