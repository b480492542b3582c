# fairseq: batches of as many rows as have so many tokens, gradients of several, and a group at the end that is smaller
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
LENGTHS = [3 + (7 * i) % 11 for i in range(57)]


class Sentences(Dataset):
    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, i):
        return torch.arange(LENGTHS[i]) % 9


def batches(order, most):
    batch = []
    for i in sorted(order, key=lambda i: LENGTHS[i]):
        if batch and LENGTHS[i] * (len(batch) + 1) > most:
            yield batch
            batch = []
        batch.append(i)
    yield batch


net = torch.nn.Sequential(torch.nn.Embedding(9, 12), torch.nn.Linear(12, 9))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
steps = samples = 0
for epoch in range(2):
    order = torch.randperm(len(LENGTHS)).tolist()
    loader = DataLoader(
        Sentences(),
        batch_sampler=list(batches(order, 40)),
        collate_fn=lambda rows: torch.nn.utils.rnn.pad_sequence(rows, batch_first=True),
    )
    waiting = 0
    for number, ids in enumerate(loader, 1):
        loss = torch.nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        (loss / 4).backward()
        waiting += len(ids)
        if number % 4 == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()
            steps, samples, waiting = steps + 1, samples + waiting, 0
    print(loss.item().hex())
truth(steps=steps, samples=samples)
