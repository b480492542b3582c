# timm, YOLO: a copy of the weights is averaged after each step and validated in the middle of an epoch, as is the model
# torch+torch._dynamo quick
import copy

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = TensorDataset(torch.randn(60, 10), torch.randint(0, 4, (60,)))
valid = TensorDataset(torch.randn(30, 10), torch.randint(0, 4, (30,)))
net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
average = copy.deepcopy(net).eval().requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)


@torch.no_grad()
def validate(model):
    model.eval()
    right = 0
    for x, y in DataLoader(valid, batch_size=12):
        right += (model(x).argmax(1) == y).sum().item()
    return right


steps = samples = 0
for epoch in range(2):
    for x, y in DataLoader(train, batch_size=8, shuffle=True, drop_last=True):
        net.train()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for one, other in zip(average.state_dict().values(), net.state_dict().values()):
                one.copy_(0.9 * one + 0.1 * other if one.is_floating_point() else other)
        steps, samples = steps + 1, samples + len(x)
        if steps % 4 == 0:
            print(steps, validate(net), validate(average))
    scheduler.step()
print(loss.item().hex())
truth(steps=steps, samples=samples)
