# a diffusion model: noise and times beside the pictures, an average of the weights that is copied from the model
# torch+torch._dynamo
import copy

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.time = torch.nn.Conv2d(3, 3, 3, padding=1), torch.nn.Embedding(10, 3)

    def forward(self, x, t):
        return self.conv(x) + self.time(t)[:, :, None, None]


model = Net()
average = copy.deepcopy(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
steps = samples = 0
for n in (6, 6, 6, 6, 2) * 3:
    x, t, noise = torch.randn(n, 3, 5, 5), torch.randint(0, 10, (n,)), torch.randn(n, 3, 5, 5)
    loss = ((model(x + noise, t) - noise) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps, samples = steps + 1, samples + n
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, 0.1)
with torch.no_grad():
    print(loss.item().hex(), average(x, t).sum().item().hex())
truth(steps=steps, samples=samples)
