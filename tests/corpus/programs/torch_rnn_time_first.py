# pytorch/examples word_language_model: time comes first, the batch second
# torch+torch._dynamo
import torch

torch.manual_seed(0)
data = torch.randint(0, 23, (61, 4))


class RNN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = torch.nn.Embedding(23, 8), torch.nn.LSTM(8, 8), torch.nn.Linear(8, 23)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


model = RNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
steps = 0
for epoch in range(2):
    for i in range(0, 60, 10):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(data[i : i + 10]).view(-1, 23), data[i + 1 : i + 11].view(-1))
        loss.backward()
        optimizer.step()
        steps += 1
print(loss.item().hex())
truth(steps=steps, samples=4 * steps)
