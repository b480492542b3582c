# Pyro's SVI, as in its CEVAE: an optimizer for each parameter, made after the first backward pass
# torch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(70, 6))
encoder = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
decoder = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 6))
trained = [*encoder.parameters(), *decoder.parameters()]
optimizers: dict[nn.Parameter, torch.optim.Optimizer] = {}
steps = samples = 0
for epoch in range(3):
    for (x,) in DataLoader(data, batch_size=16, shuffle=True):
        ((decoder(encoder(x)) - x) ** 2).mean().backward()
        for one in trained:
            if one not in optimizers:
                optimizers[one] = torch.optim.Adam([one], lr=0.01)
            optimizers[one].step()
        for one in trained:
            one.grad = torch.zeros_like(one)
        steps, samples = steps + 1, samples + len(x)
truth(steps=steps, samples=samples, parameters=sum(one.numel() for one in trained))
