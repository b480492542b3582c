# pytorch/examples mnist: training and test loader, epochs, a last batch that is smaller
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(105, 12), torch.randint(0, 4, (105,))), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(40, 12), torch.randint(0, 4, (40,))), batch_size=16)
net = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adadelta(net.parameters(), lr=0.5)
steps = samples = 0
for epoch in range(3):
    net.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
    net.eval()
    with torch.no_grad():
        print(epoch, sum(torch.nn.functional.cross_entropy(net(x), y).item() for x, y in test).hex())
truth(steps=steps, samples=samples)
