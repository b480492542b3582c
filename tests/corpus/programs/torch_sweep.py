# a sweep in one process: a model is built, trained and dropped again and again, batches cut from an array
# torch+torch._dynamo
import torch

torch.manual_seed(0)
x = torch.randn(64, 3)
steps = samples = 0
for width in (4, 8, 4, 16, 4, 8, 4, 4, 8, 4, 4):
    model = torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.ReLU(), torch.nn.Linear(width, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for begin in range(0, 64, width * 4):
        batch = x[begin : begin + width * 4]
        loss = model(batch).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        steps, samples = steps + 1, samples + len(batch)
    del model, opt
print(loss.item().hex())
truth(steps=steps, samples=samples)
