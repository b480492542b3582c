# llama2.c: a stream of tokens and the tokens after them, all of one shape, and fetched one batch ahead
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, IterableDataset

torch.manual_seed(0)


class Tokens(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        for i in range(self.rows):
            tokens = (torch.arange(17) * (i + 1)) % 32
            yield tokens[:-1], tokens[1:]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = torch.nn.Embedding(32, 16), torch.nn.Linear(16, 32)

    def forward(self, tokens, targets):
        return torch.nn.functional.cross_entropy(self.head(self.embedding(tokens)).flatten(0, 1), targets.flatten())


def evaluate(model):
    model.eval()
    with torch.no_grad():
        losses = [model(x, y).item() for x, y in DataLoader(Tokens(12), batch_size=4)]
    model.train()
    return sum(losses)


model = Model()
optimizer = torch.optim.AdamW(model.parameters())
batches = iter(DataLoader(Tokens(46), batch_size=4))
x, y = next(batches)
steps = samples = 0
for step in range(6):
    if step % 3 == 0:
        print(evaluate(model).hex())
    for _ in range(2):
        (model(x, y) / 2).backward()
        samples += len(x)
        x, y = next(batches, (None, None))
    optimizer.step()
    optimizer.zero_grad()
    steps += 1
assert samples == 46
truth(steps=steps, samples=samples)
