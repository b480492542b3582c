# modded-nanogpt, nanochat: Muon for matrices and AdamW for the rest, which step one after the other; own get_batch
# torch+torch._dynamo quick
import torch


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        params = list(params)
        sizes = sorted({p.numel() for p in params})
        groups = [{"params": [p for p in params if p.numel() == size]} for size in sizes]
        super().__init__(groups, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                buffer = self.state[p].setdefault("momentum", torch.zeros_like(p.grad))
                buffer.lerp_(p.grad, 1 - group["momentum"])
                x = buffer / (buffer.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                p.add_(x, alpha=-group["lr"])


class GPT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(50, 16), torch.nn.Linear(16, 50, bias=False)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(16, 16, bias=False), torch.nn.Linear(16, 16, bias=False)])

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for layer in self.layers:
            x = x + layer(x)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


torch.manual_seed(0)
model = GPT()
adam = torch.optim.AdamW(
    [{"params": model.embed.parameters(), "lr": 0.1}, {"params": model.head.parameters(), "lr": 0.01}], fused=True
)
optimizers = [adam, Muon(model.layers.parameters())]
data = torch.randint(0, 50, (5000,))
steps = samples = 0
for i in range(24):
    for _ in range(2 if i < 12 else 3):
        places = torch.randint(0, 4900, (6,)).tolist()
        x = torch.stack([data[at : at + 8] for at in places])
        y = torch.stack([data[at + 1 : at + 9] for at in places])
        loss = model(x, y)
        (loss / 2).backward()
        samples += 6
    for optimizer in optimizers:
        optimizer.step()
    model.zero_grad(set_to_none=True)
    steps += 1
    if i % 10 == 0:
        model.eval()
        with torch.no_grad():
            model(x, y)
        model.train()
print(loss.item().hex())
truth(steps=steps, samples=samples)
