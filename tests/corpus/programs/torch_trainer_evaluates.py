# the Hugging Face Trainer: it evaluates when the last batch of the epoch, a smaller one, is fetched already
# torch+torch._dynamo quick
import itertools

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
training = TensorDataset(torch.randn(50, 6), torch.randn(50, 1))
validation = TensorDataset(torch.randn(20, 6), torch.randn(20, 1))


def ahead(loader):
    batches = iter(loader)
    present = next(batches, None)
    while present is not None:
        following = next(batches, None)
        yield present
        present = following


model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters())
steps = samples = 0
for epoch in range(3):
    batches = ahead(DataLoader(training, batch_size=8, shuffle=True))
    while several := list(itertools.islice(batches, 3)):
        model.train()
        for x, y in several:
            (torch.nn.functional.mse_loss(model(x), y) / len(several)).backward()
            samples += len(x)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if steps % 3 == 2:
            model.eval()
            with torch.no_grad():
                losses = [torch.nn.functional.mse_loss(model(x), y) for x, y in ahead(DataLoader(validation, 10))]
    print(sum(losses).item().hex())
truth(steps=steps, samples=samples)
