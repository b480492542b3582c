# Detectron2: single pictures are drawn, and put together to batches of wide ones and of high ones
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
BATCH = 4


class Pictures(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        size = (1, 6, 8) if i % 3 else (1, 8, 6)
        return {"picture": torch.full(size, i / 60), "label": i % 3}


def grouped(loader):
    """Batches of pictures that are alike. What is left at the end is dropped."""
    groups = {True: [], False: []}
    for one in loader:
        group = groups[one["picture"].shape[1] > one["picture"].shape[2]]
        group.append(one)
        if len(group) == BATCH:
            yield group[:]
            group.clear()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, batch):
        pictures = torch.stack([one["picture"] for one in batch])
        found = self.head(torch.relu(self.body(pictures)).mean((2, 3)))
        return torch.nn.functional.cross_entropy(found, torch.tensor([one["label"] for one in batch]))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
steps = samples = 0
for epoch in range(3):
    for batch in grouped(DataLoader(Pictures(), batch_size=1, shuffle=True, collate_fn=lambda found: found[0])):
        loss = net(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(batch)
print(loss.item().hex())
truth(steps=steps, samples=samples)
