# pytorch-metric-learning DeepAdversarialMetricLearning: the metric alone, its generator alone, then both
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(90, 8), torch.randint(0, 5, (90,))), batch_size=16, shuffle=True)
trunk, embedder = torch.nn.Linear(8, 12), torch.nn.Linear(12, 6)
generator, classifier = torch.nn.Linear(24, 12), torch.nn.Linear(6, 5)
models = (trunk, embedder, generator, classifier)
optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3) for model in models]
steps = samples = 0
for epoch in range(3):
    alone = epoch == 1
    for model in (trunk, embedder, classifier):
        model.train(not alone)
    for x, y in loader:
        for model in models:
            model.zero_grad()
        inner = trunk(x)
        loss = torch.zeros(())
        if not alone:
            loss = torch.nn.functional.cross_entropy(classifier(embedder(inner)), y)
        if epoch:
            made = generator(torch.cat([inner, inner.flip(0)], 1))
            loss = loss + (embedder(made) - embedder(inner)).norm(dim=1).mean() + (made - inner).pow(2).mean()
        loss.backward()
        for optimizer in optimizers[2:3] if alone else optimizers if epoch else (*optimizers[:2], optimizers[3]):
            optimizer.step()
        steps, samples = steps + 1, samples + len(x)
    print(loss.item().hex())
truth(steps=steps, samples=samples, parameters=sum(p.numel() for model in models for p in model.parameters()))
