# torch.compile of the model, and an optimizer made before it (a compiler in name alone: no C++ is needed)
# torch+torch._dynamo
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
model = torch.compile(net, backend="aot_eager")
for i in range(12):
    optimizer.zero_grad()
    loss = model(torch.randn(10, 6)).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item().hex())
truth(steps=12, samples=120)
