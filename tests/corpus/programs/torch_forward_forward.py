# pytorch/examples mnist_forward_forward: each layer has its optimizer and is trained to the end before the next
# torch+torch._dynamo
import torch

torch.manual_seed(0)


class Layer(torch.nn.Linear):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.opt = torch.optim.Adam(self.parameters(), lr=0.03)

    def forward(self, x):
        return torch.relu(torch.nn.functional.normalize(x) @ self.weight.T + self.bias)


layers = [Layer(8, 16), Layer(16, 16), Layer(16, 16)]
pos, neg = torch.randn(24, 8), torch.randn(24, 8)
steps = 0
for layer in layers:
    for epoch in range(10):
        g_pos, g_neg = layer(pos).pow(2).mean(1), layer(neg).pow(2).mean(1)
        loss = torch.log(1 + torch.exp(torch.cat([2 - g_pos, g_neg - 2]))).mean()
        layer.opt.zero_grad()
        loss.backward()
        layer.opt.step()
        steps += 1
    pos, neg = layer(pos).detach(), layer(neg).detach()
print(loss.item().hex())
truth(steps=steps, samples=None)
