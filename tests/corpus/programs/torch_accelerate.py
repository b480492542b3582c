# Accelerate: its loader fetches one batch in advance, and the program stops before the end
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Shard:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        batches = iter(self.loader)
        present = next(batches)
        while True:
            try:
                following = next(batches)
            except StopIteration:
                yield present
                return
            yield present
            present = following


loader = Shard(DataLoader(TensorDataset(torch.randn(200, 5), torch.randn(200, 1)), batch_size=16, shuffle=True))
net = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
steps = samples = 0
for x, y in loader:
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    steps, samples = steps + 1, samples + len(x)
    if steps == 12:
        break
print(loss.item().hex())
truth(steps=steps, samples=samples)
