# a contrastive model without a forward pass: one part reads both views of the batch, the other the batch
# torch+torch._dynamo quick
import torch

torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.classifier = torch.nn.Linear(6, 4), torch.nn.Linear(4, 3)

    def loss(self, x, y):
        one, other = self.encoder(torch.cat([x, x + 0.1 * torch.randn_like(x)])).chunk(2)
        return torch.nn.functional.cross_entropy(self.classifier(one), y) + ((one - other) ** 2).mean()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = samples = 0
for step in range(12):
    x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
    loss = model.loss(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    steps, samples = steps + 1, samples + len(x)
print(loss.item().hex())
truth(steps=steps, samples=samples)
