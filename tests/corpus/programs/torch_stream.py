# an iterable data set (WebDataset, torchdata): there are no indexes, the arrays of a batch agree
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, IterableDataset

torch.manual_seed(0)


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(45):
            yield torch.full((3, 4, 4), i / 45), i % 3


net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))
optimizer = torch.optim.Adam(net.parameters())
steps = samples = 0
for epoch in range(2):
    for x, y in DataLoader(Stream(), batch_size=8):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
