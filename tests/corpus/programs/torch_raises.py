# a program that fails in its module, catches it, and goes on; its traceback is printed
# torch+torch._dynamo
import sys
import traceback

import torch

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 1)

    def forward(self, x):
        if x.shape[0] == 5:
            raise ValueError("five")
        return self.a(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
samples = steps = 0
for n in (4, 4, 5, 4, 4):
    try:
        loss = net(torch.ones(n, 3)).mean()
        loss.backward()
    except ValueError:
        traceback.print_exc()
        continue
    optimizer.step()
    optimizer.zero_grad()
    steps, samples = steps + 1, samples + n
try:
    loss.backward()
except RuntimeError:
    print("".join(traceback.format_exc(limit=3)), file=sys.stderr)
print(loss.item().hex())
truth(steps=steps, samples=samples)
