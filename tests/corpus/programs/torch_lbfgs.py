# pytorch/examples time_sequence_prediction: LBFGS evaluates its closure many times in a step
# torch+torch._dynamo
import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
x, y = torch.randn(20, 6), torch.randn(20, 1)
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=6)


def closure():
    optimizer.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    return loss


for i in range(8):
    loss = optimizer.step(closure)
print(loss.item().hex())
truth(steps=8, samples=160)
