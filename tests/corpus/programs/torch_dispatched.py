# Accelerate's dispatcher: rank 0 draws a batch for each process, puts them together and takes its part
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, IterableDataset

torch.manual_seed(0)
WORLD = 2


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(96):
            yield {"x": torch.full((6, 4), i / 96), "y": i % 3}


def dispatched(loader):
    found = iter(loader)
    while True:
        drawn = []
        for _ in range(WORLD):
            one = next(found, None)
            if one is None:
                return
            drawn.append(one)
        whole = {key: torch.cat([one[key] for one in drawn]) for key in drawn[0]}
        rows = len(whole["y"]) // WORLD
        yield {key: value[:rows] for key, value in whole.items()}


net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
steps = samples = 0
for epoch in range(2):
    for batch in dispatched(DataLoader(Stream(), batch_size=8)):
        loss = torch.nn.functional.cross_entropy(net(batch["x"]), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(batch["y"])
print(loss.item().hex())
truth(steps=steps, samples=samples)
