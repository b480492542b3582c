# a GAN whose two networks are parts of one module, which is called for both; batches are made by hand
# torch+torch._dynamo
import torch


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)

    def forward(self, x, generate=False):
        return self.generator(x) if generate else self.critic(x)


torch.manual_seed(0)
model = Both()
opt_d = torch.optim.Adam(model.critic.parameters(), lr=1e-3)
opt_g = torch.optim.Adam(model.generator.parameters(), lr=1e-3)
for i in range(20):
    opt_d.zero_grad()
    (-model(torch.randn(10, 6)).mean()).backward()
    model(model(torch.randn(10, 4), generate=True).detach()).mean().backward()
    opt_d.step()
    opt_g.zero_grad()
    loss = -model.critic(model(torch.randn(10, 4), generate=True)).mean()
    loss.backward()
    opt_g.step()
print(loss.item().hex())
truth(steps=20, samples=200)
