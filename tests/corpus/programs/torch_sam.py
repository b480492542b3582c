# sharpness-aware minimisation: an optimizer that wraps another and looks at the batch twice
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, **kwargs):
        super().__init__(params, dict(rho=0.05))
        self.base = base(self.param_groups, **kwargs)

    @torch.no_grad()
    def step(self, closure):
        closure = torch.enable_grad()(closure)
        moved = []
        for group in self.param_groups:
            for p in group["params"]:
                e = p.grad * 0.05
                p.add_(e)
                moved.append((p, e))
        self.zero_grad()
        closure()
        for p, e in moved:
            p.sub_(e)
        self.base.step()
        self.zero_grad()


net = torch.nn.Linear(5, 1)
optimizer = SAM(net.parameters(), torch.optim.SGD, lr=0.05)
steps = samples = 0
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(50, 5), torch.randn(50, 1)), batch_size=8):

        def closure():
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            return loss

        loss = closure()
        optimizer.step(closure)
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
