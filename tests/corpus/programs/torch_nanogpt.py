# karpathy/nanoGPT: get_batch from a memory map, gradient accumulation, estimate_loss, a fused-like AdamW, clipping
# torch+torch._dynamo quick
import os
import sys

import numpy as np
import torch

torch.manual_seed(0)
path = os.path.join(sys.argv[1], "train.bin")
np.random.default_rng(0).integers(0, 31, 4000).astype(np.uint16).tofile(path)


def get_batch(n=6, block=8):
    data = np.memmap(path, dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block - 1, (n,))
    x = torch.stack([torch.from_numpy(data[i : i + block].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block].astype(np.int64)) for i in ix])
    return x, y


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(31, 16), torch.nn.Embedding(8, 16)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
        self.lm_head = torch.nn.Linear(16, 31, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        h = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        logits = self.lm_head(h + self.mlp(h))
        return logits, torch.nn.functional.cross_entropy(logits.view(-1, 31), targets.view(-1))


model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}])


@torch.no_grad()
def estimate_loss():
    model.eval()
    found = np.mean([model(*get_batch())[1].item() for _ in range(4)])
    model.train()
    return found


x, y = get_batch()
steps = samples = 0
for it in range(12):
    if it % 5 == 0:
        print(it, float(estimate_loss()).hex())
    for micro in range(4):
        _, loss = model(x, y)
        samples += len(x)
        x, y = get_batch()
        (loss / 4).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    steps += 1
print(loss.item().hex())
truth(steps=steps, samples=samples)
