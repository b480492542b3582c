# a batch is a dictionary of strings, lists and padded tensors from a collate of its own, made by workers (CLIP, ESM)
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Captions(Dataset):
    def __len__(self):
        return 42

    def __getitem__(self, i):
        return {"name": f"row-{i}", "tokens": list(range(1, 2 + i % 5)), "label": i % 3}


def collate(rows):
    longest = max(len(row["tokens"]) for row in rows)
    ids = torch.tensor([row["tokens"] + [0] * (longest - len(row["tokens"])) for row in rows])
    labels = torch.tensor([row["label"] for row in rows])
    return {"names": [row["name"] for row in rows], "ids": ids, "labels": labels, "lengths": ids.gt(0).sum(1).tolist()}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(10, 8, padding_idx=0), torch.nn.Linear(8, 3)

    def forward(self, batch):
        mean = self.embed(batch["ids"]).sum(1) / torch.tensor(batch["lengths"])[:, None]
        return self.head(mean)


net = Model()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
steps = samples = 0
for epoch in range(2):
    for batch in DataLoader(Captions(), batch_size=8, collate_fn=collate, num_workers=2, shuffle=True):
        loss = torch.nn.functional.cross_entropy(net(batch), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(batch["names"])
    print(loss.item().hex())
truth(steps=steps, samples=samples)
