# the losses of several batches are summed, and one backward pass is made for all: of an epoch, or of a few
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(70, 8), torch.randint(0, 4, (70,))), batch_size=10, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = samples = 0


def learn(batches):
    global steps, samples
    loss = torch.zeros(())
    for x, y in batches:
        loss = loss + torch.nn.functional.cross_entropy(model(x), y)
        samples += len(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
    print(loss.item().hex())


for epoch in range(3):
    learn(loader)
for epoch in range(3):
    batches = iter(loader)
    for _ in range(3):
        learn([next(batches), next(batches)])
truth(steps=steps, samples=samples)
