# PEFT's LoRA-GA: gradients of some batches say how adapters begin, and then an optimizer trains these
# torch
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(70, 6), torch.randn(70, 3))
base = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
for x, y in DataLoader(data, batch_size=7, shuffle=True):
    ((base(x) - y) ** 2).mean().backward()
left, _, right = torch.linalg.svd(base[0].weight.grad, full_matrices=False)
down, up = nn.Parameter(right[:2].clone()), nn.Parameter(0.1 * left[:, :2])
base.requires_grad_(False)


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.down, self.up = base, down, up

    def forward(self, x):
        hidden = self.base[0](x) + x @ self.down.T @ self.up.T
        return self.base[2](self.base[1](hidden))


model = Adapted()
optimizer = torch.optim.AdamW([down, up], lr=0.01)
steps = samples = 0
for epoch in range(4):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
truth(steps=steps, samples=samples, parameters=down.numel() + up.numel())
