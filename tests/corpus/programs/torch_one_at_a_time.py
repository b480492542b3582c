# a one-step actor-critic that learns from each transition at once, as pytorch/examples calls its policy: no batches
# torch+torch._dynamo quick
import torch


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = torch.nn.Linear(4, 16)
        self.action_head, self.value_head = torch.nn.Linear(16, 2), torch.nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.shared(x))
        return self.action_head(x).softmax(-1), self.value_head(x)


torch.manual_seed(0)
policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
steps = 0
following = torch.zeros(())
for t in range(40):
    state = torch.randn(4)
    probabilities, value = policy(state)
    chosen = torch.distributions.Categorical(probabilities)
    action = chosen.sample()
    gain = state[action].detach() + 0.9 * following - value
    loss = (gain**2 - chosen.log_prob(action) * gain.detach()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    following = value.detach()
    steps += 1
print(loss.item().hex())
truth(steps=steps, samples=steps, parameters=sum(p.numel() for p in policy.parameters()))
