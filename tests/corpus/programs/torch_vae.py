# pytorch/examples vae: the test loader has the same batch size, its iterator the same address
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader

torch.manual_seed(0)
train, test = DataLoader(torch.randn(64, 8), batch_size=16, shuffle=True), DataLoader(torch.randn(48, 8), batch_size=16)


class VAE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = torch.nn.Linear(8, 4), torch.nn.Linear(2, 8)

    def forward(self, x):
        mu, logvar = self.encode(x).chunk(2, dim=1)
        return self.decode(mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)), mu, logvar


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
steps = samples = 0


def cost(x):
    out, mu, logvar = model(x)
    return ((out - x) ** 2).sum() - 0.5 * (1 + logvar - mu**2 - logvar.exp()).sum()


for epoch in range(5):
    model.train()
    for x in train:
        optimizer.zero_grad()
        loss = cost(x)
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
    model.eval()
    with torch.no_grad():
        print(sum(cost(x).item() for x in test).hex())
truth(steps=steps, samples=samples)
