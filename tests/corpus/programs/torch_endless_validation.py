# detectron2, mmengine: loaders that never end; after each step a batch of the other one is validated
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, Sampler, TensorDataset

torch.manual_seed(0)


class Endless(Sampler):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        while True:
            yield from torch.randperm(self.length).tolist()


def batches(length, size):
    data = TensorDataset(torch.randn(length, 10), torch.randint(0, 4, (length,)))
    return iter(DataLoader(data, batch_size=size, sampler=Endless(length)))


train, valid = batches(50, 8), batches(20, 5)
net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Dropout(0.1), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
steps = samples = 0
for iteration in range(25):
    net.train()
    x, y = next(train)
    loss = torch.nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps, samples = steps + 1, samples + len(x)
    net.eval()
    x, y = next(valid)
    with torch.no_grad():
        right = (net(x).argmax(1) == y).sum().item()
print(loss.item().hex(), right)
truth(steps=steps, samples=samples)
