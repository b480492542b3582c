# TRL's GRPOTrainer: the loader gives the same prompts again for each slice of the answers that were written to them
# torch+torch._dynamo
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
VOCABULARY, GROUP, SLICES, EPOCHS, ACCUMULATE = 12, 4, 2, 2, 2
prompts = TensorDataset(torch.randint(0, VOCABULARY, (10, 3)))


class Again(torch.utils.data.Sampler):
    def __iter__(self):
        for two in torch.randperm(len(prompts)).view(-1, 2).tolist():
            for _ in range(SLICES * EPOCHS):
                yield from (prompt for prompt in two for _ in range(GROUP))

    def __len__(self):
        return len(prompts) * GROUP * SLICES * EPOCHS


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = torch.nn.Embedding(VOCABULARY, 16), torch.nn.GRU(16, 16, batch_first=True)
        self.head = torch.nn.Linear(16, VOCABULARY)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


model = Policy()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


@torch.no_grad()
def write(ids):
    for _ in range(5):
        ids = torch.cat([ids, torch.multinomial(model(ids)[:, -1].softmax(1), 1)], 1)
    return ids


def likelihood(ids):
    return model(ids[:, :-1]).log_softmax(2).gather(2, ids[:, 1:, None]).squeeze(2)[:, -5:].sum(1)


steps = samples = 0
written, gain = [], []
for number, (ids,) in enumerate(DataLoader(prompts, batch_size=2 * GROUP, sampler=Again())):
    if number % (SLICES * EPOCHS) == 0:
        model.eval()
        answers = write(ids)
        model.train()
        reward = answers[:, -5:].float().mean(1).view(-1, GROUP)
        advantage = ((reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)).flatten()
        written, gain = answers.chunk(SLICES), advantage.chunk(SLICES)
    part = number % SLICES
    loss = -(likelihood(written[part]) * gain[part]).mean() / ACCUMULATE
    loss.backward()
    samples += len(written[part])
    if (number + 1) % ACCUMULATE == 0:
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        print(loss.item().hex())
truth(steps=steps, samples=samples)
