# PyG gcn: the whole graph in each step; a row is no sample
# torch+torch._dynamo
import torch

torch.manual_seed(0)


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

    def forward(self, x, edges):
        h = self.a(x).relu()
        return self.b(h.index_add(0, edges[1], h[edges[0]]))


net, x, edges, y = GCN(), torch.randn(30, 6), torch.randint(0, 30, (2, 80)), torch.randint(0, 3, (30,))
optimizer = torch.optim.Adam([{"params": net.a.parameters(), "weight_decay": 5e-4}, {"params": net.b.parameters()}])
for epoch in range(20):
    net.train()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(x, edges)[:10], y[:10])
    loss.backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        net(x, edges)
print(loss.item().hex())
truth(steps=20, samples=None)
