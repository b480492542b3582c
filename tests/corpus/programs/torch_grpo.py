# TRL's GRPO: the model writes answers one token after the other, then trains on them for several epochs
# torch+torch._dynamo
import torch

torch.manual_seed(0)
VOCABULARY, LENGTH, PROMPTS, GROUP = 12, 5, 4, 6


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = torch.nn.Embedding(VOCABULARY, 16), torch.nn.GRU(16, 16, batch_first=True)
        self.head = torch.nn.Linear(16, VOCABULARY)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


model, reference = Model(), Model()
reference.load_state_dict(model.state_dict())
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


@torch.no_grad()
def write(prompts):
    ids = prompts.repeat_interleave(GROUP, 0)
    for _ in range(LENGTH):
        ids = torch.cat([ids, torch.multinomial(model(ids)[:, -1].softmax(1), 1)], 1)
    return ids


def likelihood(net, ids):
    return net(ids[:, :-1]).log_softmax(2).gather(2, ids[:, 1:, None]).squeeze(2)[:, -LENGTH:].sum(1)


steps = samples = 0
for iteration in range(3):
    ids = write(torch.randint(0, VOCABULARY, (PROMPTS, 3)))
    reward = ids[:, -LENGTH:].float().mean(1).view(PROMPTS, GROUP)
    advantage = ((reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)).flatten()
    with torch.no_grad():
        old, anchor = likelihood(model, ids), likelihood(reference, ids)
    for epoch in range(2):
        for chosen in torch.randperm(len(ids)).split(10):
            new = likelihood(model, ids[chosen])
            ratio = (new - old[chosen]).exp()
            gain = torch.min(ratio * advantage[chosen], ratio.clamp(0.8, 1.2) * advantage[chosen])
            loss = (0.04 * (new - anchor[chosen]) ** 2 - gain).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps, samples = steps + 1, samples + len(chosen)
    print(loss.item().hex())
truth(steps=steps, samples=samples)
