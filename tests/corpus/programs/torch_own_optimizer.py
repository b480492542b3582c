# an optimizer of another library (Keras on torch, own classes): updates in place after the backward pass
# torch+torch._dynamo
import torch

torch.manual_seed(0)


class Momentum:
    def __init__(self, variables, rate=0.05):
        self.variables, self.rate = list(variables), rate
        self.velocity = [torch.zeros_like(v) for v in self.variables]

    def apply(self):
        with torch.no_grad():
            for v, m in zip(self.variables, self.velocity):
                m.mul_(0.9).add_(v.grad, alpha=-self.rate)
                v.copy_(v + m)


net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = Momentum(net.parameters())
for i in range(17):
    net.zero_grad()
    loss = net(torch.randn(7, 6)).pow(2).mean()
    loss.backward()
    optimizer.apply()
print(loss.item().hex())
truth(steps=17, samples=119)
