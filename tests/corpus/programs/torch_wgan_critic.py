# a WGAN: five steps of the critic for each of the generator, weights clipped by hand, no loader
# torch+torch._dynamo
import torch

torch.manual_seed(0)
net_g, net_d = torch.nn.Linear(3, 6), torch.nn.Linear(6, 1)
opt_d, opt_g = (torch.optim.RMSprop(n.parameters(), lr=1e-3) for n in (net_d, net_g))
steps = 0
for i in range(6):
    for _ in range(5):
        opt_d.zero_grad()
        loss = net_d(net_g(torch.randn(8, 3)).detach()).mean() - net_d(torch.randn(8, 6)).mean()
        loss.backward()
        opt_d.step()
        steps += 1
        with torch.no_grad():
            for p in net_d.parameters():
                p.clamp_(-0.1, 0.1)
    opt_g.zero_grad()
    (-net_d(net_g(torch.randn(8, 3))).mean()).backward()
    opt_g.step()
print(loss.item().hex())
truth(steps=steps, samples=240)
