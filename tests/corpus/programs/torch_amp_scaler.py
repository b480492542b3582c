# mixed precision with a scaler and clipping
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = torch.nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu")
steps = samples = 0
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(40, 5), torch.randn(40, 1)), batch_size=8, drop_last=True):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = ((net(x) - y) ** 2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
