# CleanRL sac: critics each step, the actor and the temperature every second one and then twice
# torch+torch._dynamo
import torch

torch.manual_seed(0)
actor, q1, q2 = torch.nn.Linear(4, 2), torch.nn.Linear(6, 1), torch.nn.Linear(6, 1)
opt_q = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=1e-3)
opt_a = torch.optim.Adam(actor.parameters(), lr=1e-3)
log_alpha = torch.zeros(1, requires_grad=True)
opt_alpha = torch.optim.Adam([log_alpha], lr=1e-3)
steps = 0
for t in range(21):
    s, a, r = torch.randn(12, 4), torch.randn(12, 2), torch.randn(12, 1)
    loss = ((q1(torch.cat([s, a], 1)) - r) ** 2).mean() + ((q2(torch.cat([s, a], 1)) - r) ** 2).mean()
    opt_q.zero_grad()
    loss.backward()
    opt_q.step()
    steps += 1
    if t % 2 == 0:
        for _ in range(2):
            pi = actor(s)
            gain = -torch.min(q1(torch.cat([s, pi], 1)), q2(torch.cat([s, pi], 1))).mean()
            opt_a.zero_grad()
            gain.backward()
            opt_a.step()
            opt_alpha.zero_grad()
            (log_alpha.exp() * gain.detach()).mean().backward()
            opt_alpha.step()
print(loss.item().hex())
truth(steps=steps, samples=252)
