# a model without a forward pass, its parts in two groups: the actor learns from a quarter of the critic's batch
# torch+torch._dynamo
import torch

torch.manual_seed(0)


class Agent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.actor = torch.nn.Linear(3, 3), torch.nn.Linear(3, 2)
        self.critic = torch.nn.Linear(3, 1)


agent = Agent()
policy = [*agent.encoder.parameters(), *agent.actor.parameters()]
opt = torch.optim.Adam([{"params": policy, "lr": 1e-3}, {"params": agent.critic.parameters(), "lr": 1e-2}])
for i in range(9):
    x = torch.randn(32, 3)
    loss = agent.critic(x).square().mean() + agent.actor(agent.encoder(x[:8])).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item().hex())
truth(steps=9, samples=288, parameters=24)
