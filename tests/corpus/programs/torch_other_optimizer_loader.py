# Keras fit on PyTorch: an optimizer that is none of PyTorch's, batches of a DataLoader, evaluations in between
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Descent:
    def __init__(self, variables, rate=0.05):
        self.variables, self.rate = list(variables), rate

    def apply(self):
        with torch.no_grad():
            torch._foreach_add_(self.variables, [v.grad for v in self.variables], alpha=-self.rate)


net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = Descent(net.parameters())
train = DataLoader(TensorDataset(torch.randn(50, 6), torch.randn(50, 1)), batch_size=8, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(20, 6), torch.randn(20, 1)), batch_size=8)
steps = samples = 0
for epoch in range(3):
    for x, y in train:
        net.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.apply()
        steps, samples = steps + 1, samples + len(x)
    net.eval()
    with torch.no_grad():
        print(sum(torch.nn.functional.mse_loss(net(x), y).item() for x, y in test).hex())
    net.train()
truth(steps=steps, samples=samples)
