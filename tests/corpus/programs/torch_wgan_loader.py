# PyTorch-GAN's wgan_gp: the critic learns from each batch of the loader, the generator once after five of them
# torch+torch._dynamo
import torch

torch.manual_seed(0)
net_g = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 6))
net_d = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
opt_g, opt_d = (torch.optim.Adam(n.parameters(), lr=1e-3) for n in (net_g, net_d))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(84, 6)), batch_size=8)
steps = samples = 0
for epoch in range(2):
    for i, (real,) in enumerate(loader):
        opt_d.zero_grad()
        z = torch.randn(len(real), 3)
        fake = net_g(z)
        mixed = (0.5 * real + 0.5 * fake).detach().requires_grad_(True)
        slope = torch.autograd.grad(net_d(mixed).sum(), mixed, create_graph=True)[0]
        loss = net_d(fake.detach()).mean() - net_d(real).mean() + 10 * (slope.norm(dim=1) - 1).square().mean()
        loss.backward()
        opt_d.step()
        steps, samples = steps + 1, samples + len(real)
        opt_g.zero_grad()
        if i % 5 == 0:
            (-net_d(net_g(z)).mean()).backward()
            opt_g.step()
print(loss.item().hex())
truth(steps=steps, samples=samples)
