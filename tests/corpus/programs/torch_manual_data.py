# word_language_model of older days: p.data.add_, which no version counter shows; steps are the backward passes
# torch+torch._dynamo
import torch

torch.manual_seed(0)
net = torch.nn.Linear(6, 1)
for i in range(20):
    loss = net(torch.randn(7, 6)).pow(2).mean()
    net.zero_grad()
    loss.backward()
    for p in net.parameters():
        p.data.add_(p.grad, alpha=-0.05)
print(loss.item().hex())
truth(steps=20, samples=140)
