# the Hugging Face Trainer: the batches of a step are drawn in advance, with one more behind them
# torch+torch._dynamo
import itertools

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randint(0, 20, (72, 7)), torch.randint(0, 2, (72,)))


def ahead(loader):
    batches = iter(loader)
    present = next(batches, None)
    while present is not None:
        following = next(batches, None)
        yield present
        present = following


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(20, 8), torch.nn.Linear(8, 2)

    def forward(self, input_ids, labels):
        logits = self.head(self.embed(input_ids).mean(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 / (s + 1))
steps = samples = 0
for epoch in range(2):
    batches = ahead(DataLoader(data, batch_size=8, shuffle=True))
    while True:
        several = list(itertools.islice(batches, 4))
        if not several:
            break
        for ids, labels in several:
            loss = model(input_ids=ids, labels=labels)["loss"] / len(several)
            loss.backward()
            samples += len(ids)
        optimizer.step()
        scheduler.step()
        model.zero_grad()
        steps += 1
    print(loss.item().hex())
truth(steps=steps, samples=samples)
