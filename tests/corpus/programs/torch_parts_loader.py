# an autoencoder without a forward pass, called by its parts; the loader fetches one batch in advance
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = torch.nn.Linear(6, 3), torch.nn.Linear(3, 6)


model = Model()
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.randn(45, 6))
steps = samples = 0
for epoch in range(3):
    batches = iter(DataLoader(data, batch_size=8, shuffle=True))
    following = next(batches)
    while following is not None:
        (x,), following = following, next(batches, None)
        loss = ((model.decode(model.encode(x)) - x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        steps, samples = steps + 1, samples + len(x)
    with torch.no_grad():
        print(((model.decode(model.encode(data.tensors[0])) - data.tensors[0]) ** 2).mean().item().hex())
truth(steps=steps, samples=samples)
