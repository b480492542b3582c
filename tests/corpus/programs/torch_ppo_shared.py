# CleanRL ppo_continuous_action with a trunk that actor and critic share, heads in a list, and two passes a step
# torch+torch._dynamo quick
import torch

torch.manual_seed(0)


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh())
        self.heads = torch.nn.ModuleList([torch.nn.Linear(16, 2), torch.nn.Linear(16, 1)])
        self.spread = torch.nn.Parameter(torch.zeros(1, 2))

    def act(self, x, action=None):
        hidden = self.trunk(x)
        chances = torch.distributions.Normal(self.heads[0](hidden), self.spread.exp())
        action = chances.sample() if action is None else action
        return action, chances.log_prob(action).sum(1), self.heads[1](hidden)


agent = Agent()
weights = [one for one in agent.parameters() if one.dim() > 1]
others = [one for one in agent.parameters() if one.dim() < 2]
optimizer = torch.optim.AdamW([{"params": weights, "weight_decay": 0.01}, {"params": others}], lr=1e-3)
steps = samples = 0
for iteration in range(4):
    obs = torch.randn(30, 4)
    with torch.no_grad():
        actions, logs, _ = agent.act(obs)
    for epoch in range(2):
        order = torch.randperm(30)
        for start in range(0, 30, 16):
            for chosen in order[start : start + 16].chunk(2):
                _, log, value = agent.act(obs[chosen], actions[chosen])
                loss = -(log - logs[chosen]).exp().mean() + (value**2).mean()
                loss.backward()
                samples += len(chosen)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
print(loss.item().hex())
truth(steps=steps, samples=samples)
