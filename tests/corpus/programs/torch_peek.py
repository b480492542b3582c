# a batch is looked at before the training, and the loader is asked for more than is used
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(90, 5), torch.randn(90, 1)), batch_size=16, shuffle=True)
sanity = DataLoader(TensorDataset(torch.randn(32, 5), torch.randn(32, 1)), batch_size=16)
net = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
print(tuple(next(iter(loader))[0].shape))
for x, y in sanity:
    net(x)
steps = samples = 0
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        if i == 4:
            break
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
