# a whole training step compiled, the optimizer in a function of its own
# torch+torch._dynamo
import torch

torch.manual_seed(0)
net = torch.nn.Linear(6, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=torch.tensor(1e-2))


@torch.compile(backend="aot_eager")
def cost(x):
    return net(x).pow(2).mean()


@torch.compile(backend="aot_eager", fullgraph=False)
def update():
    optimizer.step()


for i in range(10):
    loss = cost(torch.randn(8, 6))
    loss.backward()
    update()
    optimizer.zero_grad()
print(loss.item().hex())
truth(steps=10, samples=80)
