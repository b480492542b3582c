# CLAM, of pathology: a sample is a bag of as many patches as its slide has, and a step has one
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Slides(Dataset):
    def __len__(self):
        return 30

    def __getitem__(self, i):
        return torch.full((4 + 7 * i % 60, 6), i / 30), i % 2


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(6, 16)
        self.weigh = torch.nn.Linear(16, 1)
        self.judge = torch.nn.Linear(16, 2)

    def forward(self, bag):
        seen = torch.tanh(self.embed(bag))
        return self.judge((torch.softmax(self.weigh(seen), 0) * seen).sum(0, keepdim=True))


net = Attention()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
steps = samples = 0
for epoch in range(2):
    for bag, label in DataLoader(Slides(), batch_size=1, shuffle=True):
        loss = torch.nn.functional.cross_entropy(net(bag[0]), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(label)
print(loss.item().hex())
truth(steps=steps, samples=samples)
