# torchvision detection: a batch is a tuple of pictures of several sizes, and a tuple of targets
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Pictures(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.full((3, 6 + i % 3, 8), i / 48.0), {"boxes": torch.ones(i % 4 + 1, 4)}


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, pictures, targets):
        return {"loss": sum(self.conv(p[None]).mean() * len(t["boxes"]) for p, t in zip(pictures, targets))}


loader = DataLoader(Pictures(), batch_size=4, shuffle=True, collate_fn=lambda rows: tuple(zip(*rows)))
model = Detector()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
steps = samples = 0
for pictures, targets in loader:
    loss = sum(model(pictures, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps, samples = steps + 1, samples + len(pictures)
print(loss.item().hex())
truth(steps=steps, samples=samples)
