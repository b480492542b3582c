# DANN: source and target each have a loader that is asked by next(), and each batch goes through the model by itself
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
source = DataLoader(TensorDataset(torch.randn(48, 10), torch.randint(0, 4, (48,))), batch_size=8, shuffle=True)
target = DataLoader(TensorDataset(torch.randn(60, 10) + 1.0), batch_size=10, shuffle=True)
net, judge = torch.nn.Linear(10, 12), torch.nn.Linear(12, 1)
head = torch.nn.Linear(12, 4)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters(), *judge.parameters()], lr=0.05)
steps = samples = 0
for epoch in range(3):
    sources, targets = iter(source), iter(target)
    for _ in range(len(source)):
        x, y = next(sources)
        features = torch.relu(net(x))
        loss = torch.nn.functional.cross_entropy(head(features), y)
        loss = loss + torch.nn.functional.softplus(-judge(features)).mean()
        (u,) = next(targets)
        loss = loss + torch.nn.functional.softplus(judge(torch.relu(net(u)))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x) + len(u)
print(loss.item().hex())
truth(steps=steps, samples=samples)
