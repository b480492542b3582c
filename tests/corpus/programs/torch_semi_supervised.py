# FixMatch, Lightning's CombinedLoader: a step takes a batch of each of two loaders, and the model sees both at once
# torch+torch._dynamo
import itertools

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
labelled = DataLoader(TensorDataset(torch.randn(24, 10), torch.randint(0, 4, (24,))), batch_size=4, shuffle=True)
unlabelled = DataLoader(TensorDataset(torch.randn(70, 10)), batch_size=12, shuffle=True)
net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
steps = samples = 0
for epoch in range(3):
    for (x, y), (u,) in zip(itertools.chain(labelled, labelled), unlabelled):
        logits = net(torch.cat([x, u, u + 0.1 * torch.randn_like(u)]))
        known, weak, strong = logits.split([len(x), len(u), len(u)])
        confidence, guess = weak.detach().softmax(1).max(1)
        loss = torch.nn.functional.cross_entropy(known, y)
        loss = loss + ((confidence > 0.3) * torch.nn.functional.cross_entropy(strong, guess, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x) + len(u)
print(loss.item().hex())
truth(steps=steps, samples=samples)
