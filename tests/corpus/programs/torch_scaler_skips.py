# mixed precision whose first scale is too large: the scaler leaves out steps, the schedule goes on after those made
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=60)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=0.125, growth_interval=4, growth_factor=64.0)
steps = samples = 0
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(torch.randn(52, 6), torch.randn(52, 1)), batch_size=9):
        optimizer.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        scaler.scale(1e3 * loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        samples += len(x)
        if scaler.get_scale() >= before:
            scheduler.step()
            steps += 1
    print(loss.item().hex(), steps)
truth(steps=steps, samples=samples)
