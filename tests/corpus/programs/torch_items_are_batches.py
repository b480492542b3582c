# ESPnet 1, instant-ngp's loaders: each item of the data set is a whole batch, and the loader hands them out one by one
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
ROWS, BATCH = 90, 8


class Batches(Dataset):
    def __init__(self):
        self.parts = [range(first, min(first + BATCH, ROWS)) for first in range(0, ROWS, BATCH)]

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, i):
        rows = torch.tensor(self.parts[i])
        return torch.stack([torch.full((6,), row / ROWS) for row in rows.tolist()]), rows % 3


net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adadelta(net.parameters())
steps = samples = 0
for epoch in range(3):
    for x, y in DataLoader(Batches(), batch_size=1, shuffle=True, collate_fn=lambda found: found[0]):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
