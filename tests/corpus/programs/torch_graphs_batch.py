# PyG: a batch of graphs is one big graph, from a loader with its own collate
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)


class Batch:
    def __init__(self, graphs):
        self.x = torch.cat([x for x, _ in graphs])
        self.batch = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor([len(x) for x, _ in graphs]))
        self.y = torch.tensor([y for _, y in graphs])
        self.num_graphs = len(graphs)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

    def forward(self, x, batch, n):
        return self.b(torch.zeros(n, 8).index_add(0, batch, self.a(x).relu())).squeeze(1)


graphs = [(torch.randn(3 + i % 5, 4), float(i % 2)) for i in range(50)]
net = Net()
optimizer = torch.optim.Adam(net.parameters())
steps = samples = 0
for epoch in range(3):
    for data in DataLoader(graphs, batch_size=8, shuffle=True, collate_fn=Batch):
        optimizer.zero_grad()
        loss = ((net(data.x, data.batch, data.num_graphs) - data.y) ** 2).mean()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + data.num_graphs
print(loss.item().hex())
truth(steps=steps, samples=samples)
