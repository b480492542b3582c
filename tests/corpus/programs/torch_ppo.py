# CleanRL ppo: a rollout without gradients, then epochs of minibatches; the agent is never called itself
# torch+torch._dynamo quick
import torch

torch.manual_seed(0)


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.critic, self.actor = torch.nn.Linear(4, 1), torch.nn.Linear(4, 2)

    def act(self, x, action=None):
        spread = torch.distributions.Categorical(logits=self.actor(x))
        action = spread.sample() if action is None else action
        return action, spread.log_prob(action), self.critic(x)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
steps = samples = 0
for iteration in range(4):
    obs, actions, logs = torch.randn(32, 4), [], []
    with torch.no_grad():
        for o in obs:
            a, log, _ = agent.act(o[None])
            actions.append(a)
            logs.append(log)
    actions, logs = torch.cat(actions), torch.cat(logs)
    for epoch in range(2):
        order = torch.randperm(32)
        for start in range(0, 32, 8):
            chosen = order[start : start + 8]
            _, log, value = agent.act(obs[chosen], actions[chosen])
            loss = -(log - logs[chosen]).exp().mean() + (value**2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps, samples = steps + 1, samples + len(chosen)
print(loss.item().hex())
truth(steps=steps, samples=samples)
