# CleanRL sac with policy_frequency=4, an optimizer for each critic
# torch+torch._dynamo quick
import torch


class Actor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = torch.nn.Linear(4, 2)

    def forward(self, s):
        return self.mean(s)

    def get_action(self, s):
        mean = self(s)
        return torch.tanh(mean + 0.1 * torch.randn_like(mean))


torch.manual_seed(0)
actor, q1, q2 = Actor(), torch.nn.Linear(6, 1), torch.nn.Linear(6, 1)
opt_q1, opt_q2 = torch.optim.Adam(q1.parameters(), lr=1e-3), torch.optim.Adam(q2.parameters(), lr=1e-3)
opt_a = torch.optim.Adam(actor.parameters(), lr=1e-3)
log_alpha = torch.zeros(1, requires_grad=True)
opt_alpha = torch.optim.Adam([log_alpha], lr=1e-3)
steps = 0
for t in range(45):
    actor.get_action(torch.randn(1, 4))
    s, a, r = torch.randn(12, 4), torch.randn(12, 2), torch.randn(12, 1)
    for q, opt in ((q1, opt_q1), (q2, opt_q2)):
        loss = ((q(torch.cat([s, a], 1)) - r) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    steps += 1
    if t % 4 == 0:
        for _ in range(4):
            pi = actor.get_action(s)
            gain = -torch.min(q1(torch.cat([s, pi], 1)), q2(torch.cat([s, pi], 1))).mean()
            opt_a.zero_grad()
            gain.backward()
            opt_a.step()
            opt_alpha.zero_grad()
            (log_alpha.exp() * gain.detach()).mean().backward()
            opt_alpha.step()
print(loss.item().hex())
truth(steps=steps, samples=540)
