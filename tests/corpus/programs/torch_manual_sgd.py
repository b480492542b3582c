# PyTorch's "nn from scratch": parameters updated by hand under no_grad
# torch+torch._dynamo quick
import torch

torch.manual_seed(0)
w, b = torch.nn.Parameter(torch.randn(6, 3) / 3), torch.nn.Parameter(torch.zeros(3))
x, y = torch.randn(40, 6), torch.randint(0, 3, (40,))
steps = 0
for epoch in range(3):
    for start in range(0, 40, 8):
        loss = torch.nn.functional.cross_entropy(x[start : start + 8] @ w + b, y[start : start + 8])
        loss.backward()
        with torch.no_grad():
            w -= w.grad * 0.1
            b -= b.grad * 0.1
            w.grad.zero_()
            b.grad.zero_()
        steps += 1
print(loss.item().hex())
truth(steps=steps, samples=120)
