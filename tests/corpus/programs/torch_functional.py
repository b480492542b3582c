# torch.func: gradients of a function of the parameters, which are made anew in each step, without an optimizer
# torch+torch._dynamo
import torch
from torch.func import functional_call, grad_and_value
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
params = {name: p.detach().clone() for name, p in net.named_parameters()}


def loss_of(params, x, y):
    return torch.nn.functional.cross_entropy(functional_call(net, params, (x,)), y)


steps = samples = 0
loader = DataLoader(TensorDataset(torch.randn(44, 6), torch.randint(0, 3, (44,))), batch_size=8, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        grads, loss = grad_and_value(loss_of)(params, x, y)
        params = {name: p - 0.1 * grads[name] for name, p in params.items()}
        steps, samples = steps + 1, samples + len(x)
    print(loss.item().hex())
truth(steps=steps, samples=samples)
