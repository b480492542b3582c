# graphs without a loader: the module is called with a Batch
# torch+torch._dynamo
import torch

torch.manual_seed(0)


class Batch:
    def __init__(self, sizes):
        self.x = torch.randn(sum(sizes), 4)
        self.batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        self.num_graphs = len(sizes)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 1)

    def forward(self, data):
        return torch.zeros(data.num_graphs, 1).index_add(0, data.batch, self.a(data.x))


net = Net()
optimizer = torch.optim.Adam(net.parameters())
for i in range(15):
    optimizer.zero_grad()
    loss = net(Batch([2, 3, 4, 5, i + 1])).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
truth(steps=15, samples=75)
