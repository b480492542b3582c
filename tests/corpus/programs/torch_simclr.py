# SimCLR, BYOL: two views of each picture go through the model as one batch of twice as many rows
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Views(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        x = torch.full((3, 4, 4), i / 40)
        return (x + 0.1 * torch.randn(3, 4, 4), x + 0.1 * torch.randn(3, 4, 4)), i % 4


net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 16), torch.nn.ReLU(), torch.nn.Linear(16, 8))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
steps = samples = 0
for epoch in range(3):
    for (one, other), _ in DataLoader(Views(), batch_size=8, shuffle=True, drop_last=True):
        z = torch.nn.functional.normalize(net(torch.cat([one, other])), dim=1)
        near = z @ z.T / 0.5 - 1e9 * torch.eye(len(z))
        loss = torch.nn.functional.cross_entropy(near, torch.arange(len(z)).roll(len(one)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(one)
print(loss.item().hex())
truth(steps=steps, samples=samples)
