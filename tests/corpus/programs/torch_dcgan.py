# pytorch/examples dcgan: two optimizers, two backward passes for the discriminator
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = DataLoader(TensorDataset(torch.randn(100, 6)), batch_size=16, shuffle=True)
net_g = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 6))
net_d = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
opt_d, opt_g = (torch.optim.Adam(n.parameters(), lr=1e-2) for n in (net_d, net_g))
bce = torch.nn.BCEWithLogitsLoss()
steps = samples = 0
for epoch in range(3):
    for (real,) in data:
        n = len(real)
        net_d.zero_grad()
        bce(net_d(real), torch.ones(n, 1)).backward()
        fake = net_g(torch.randn(n, 3))
        bce(net_d(fake.detach()), torch.zeros(n, 1)).backward()
        opt_d.step()
        net_g.zero_grad()
        loss = bce(net_d(fake), torch.ones(n, 1))
        loss.backward()
        opt_g.step()
        steps, samples = steps + 1, samples + n
print(loss.item().hex())
truth(steps=steps, samples=samples)
