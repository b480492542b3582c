# sentence-transformers' trainer, data sets in turn: each batch is read twice, and one more than is used is fetched
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset


def one_ahead(loader):
    """Accelerate's loader: it hands out a batch when it has the next one."""
    batches = iter(loader)
    current = next(batches)
    for following in batches:
        yield current
        current = following
    yield current


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(70, 8), torch.randn(70, 8)), batch_size=10, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = samples = 0
for epoch in range(4):
    for _, (x, y) in zip(range(5), one_ahead(loader)):
        scores = model(x) @ model(y).T
        loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(x)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
    print(loss.item().hex())
truth(steps=steps, samples=samples)
