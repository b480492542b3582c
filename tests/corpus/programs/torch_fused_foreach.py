# fused and foreach optimizers, one after the other in one program
# torch+torch._dynamo
import torch

torch.manual_seed(0)
steps = 0
for how in ({"foreach": True}, {"fused": True}, {"foreach": False}):
    net = torch.nn.Linear(5, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2, **how)
    for i in range(7):
        loss = net(torch.randn(9, 5)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    print(loss.item().hex())
truth(steps=steps, samples=189)
