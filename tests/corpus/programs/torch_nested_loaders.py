# a stream that regroups what it draws from a loader of its own: pairs of batches, shuffled (torchdata, Merlin)
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.manual_seed(0)


class Regrouped(IterableDataset):
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        kept = []
        for x, y in self.inner:
            kept += zip(x, y)
            while len(kept) >= 12:
                yield tuple(map(torch.stack, zip(*[kept.pop(0) for _ in range(12)])))
        if kept:
            yield tuple(map(torch.stack, zip(*kept)))


inner = DataLoader(TensorDataset(torch.randn(58, 10), torch.randint(0, 4, (58,))), batch_size=7, shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
steps = samples = 0
for epoch in range(3):
    for x, y in DataLoader(Regrouped(inner), batch_size=None):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
