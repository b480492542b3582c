# few-shot learning: a loader for each task gives a support set and a query set, and both losses make one step
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = samples = 0
for task in range(12):
    rows = TensorDataset(torch.randn(40, 8), torch.randint(0, 4, (40,)))
    sets = iter(DataLoader(rows, batch_size=10, shuffle=True))
    (support_x, support_y), (query_x, query_y) = next(sets), next(sets)
    loss = torch.nn.functional.cross_entropy(model(support_x), support_y)
    loss = loss + torch.nn.functional.cross_entropy(model(query_x), query_y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps, samples = steps + 1, samples + len(support_x) + len(query_x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
