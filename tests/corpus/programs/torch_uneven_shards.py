# WebDataset with workers: each reads shards of its own, some end early, and each has a last batch that is smaller
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

torch.manual_seed(0)
SHARDS = (17, 5, 30, 9)


class Shards(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number, length in enumerate(SHARDS):
            if number % info.num_workers == info.id:
                for i in range(length):
                    yield torch.full((4, 6), number + i / length), number


net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
steps = samples = 0
for epoch in range(2):
    for x, y in DataLoader(Shards(), batch_size=8, num_workers=3):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
