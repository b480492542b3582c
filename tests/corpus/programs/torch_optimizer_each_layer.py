# one optimizer for each parameter, stepped within the backward pass (PyTorch's tutorial of that name)
# torch+torch._dynamo quick
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(40)], torch.nn.Linear(8, 1))
optimizers = {p: torch.optim.Adam([p], lr=1e-3, foreach=False) for p in net.parameters()}


def hook(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(hook)
for i in range(10):
    loss = net(torch.full((5, 8), i / 10)).pow(2).mean()
    loss.backward()
print(loss.item().hex())
truth(steps=10, samples=50)
