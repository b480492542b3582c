# knowledge distillation: a frozen teacher sees each batch before the student; the loader is made anew in each epoch
# torch+torch._dynamo quick
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(46, 10), torch.randint(0, 4, (46,)))
teacher = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).eval()
for p in teacher.parameters():
    p.requires_grad_(False)
student = torch.nn.Sequential(torch.nn.Linear(10, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)
steps = samples = 0
for epoch in range(3):
    loader = DataLoader(data, batch_size=8, shuffle=True, drop_last=epoch < 2)
    for x, y in loader:
        soft = torch.nn.functional.softmax(teacher(x) / 2.0, 1)
        logits = student(x)
        loss = torch.nn.functional.kl_div(torch.log_softmax(logits / 2.0, 1), soft, reduction="batchmean")
        loss = loss + torch.nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steps, samples = steps + 1, samples + len(x)
    print(loss.item().hex())
truth(steps=steps, samples=samples)
