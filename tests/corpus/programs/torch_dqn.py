# PyTorch's DQN tutorial: a replay buffer, an update at each step of the environment, a target network
# torch+torch._dynamo
import collections
import random

import torch

torch.manual_seed(0)
random.seed(0)
policy, target = (torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)) for _ in "ab")
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3, amsgrad=True)
memory = collections.deque(maxlen=100)
state = torch.randn(1, 4)
steps = samples = 0
for t in range(60):
    with torch.no_grad():
        action = policy(state).max(1).indices.view(1, 1)
    following = torch.randn(1, 4)
    memory.append((state, action, following, torch.tensor([1.0])))
    state = following
    if len(memory) < 16:
        continue
    s, a, n, r = (torch.cat(one) for one in zip(*random.sample(memory, 16)))
    q = policy(s).gather(1, a)
    with torch.no_grad():
        wanted = target(n).max(1).values * 0.9 + r
    loss = torch.nn.functional.smooth_l1_loss(q, wanted.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
    optimizer.step()
    steps, samples = steps + 1, samples + len(s)
    with torch.no_grad():
        for p, q in zip(target.parameters(), policy.parameters()):
            p.mul_(0.99).add_(q, alpha=0.01)
print(loss.item().hex())
truth(steps=steps, samples=samples)
