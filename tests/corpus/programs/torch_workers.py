# workers that stay, a sampler of its own, two epochs
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
data = TensorDataset(torch.randn(60, 5), torch.randn(60, 1))
sampler = WeightedRandomSampler([1.0 + i % 3 for i in range(60)], 50)
loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=2, persistent_workers=True)
net = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
steps = samples = 0
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
