"""Learn a short text by heart with a character LSTM."""

import torch
import torch.nn as nn

torch.manual_seed(3)
text = "the quick brown fox jumps over the lazy dog and runs away from it. " * 2
chars = sorted(set(text))
index = {c: i for i, c in enumerate(chars)}
data = torch.LongTensor([index[c] for c in text])


class CharLSTM(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(size, 16)
        self.lstm = nn.LSTM(16, hidden, num_layers=1, batch_first=True)
        self.out = nn.Linear(hidden, size)

    def init_hidden(self, batch):
        weight = next(self.parameters())
        zeros = weight.new_zeros(1, batch, self.hidden)
        return zeros, zeros.clone()

    def forward(self, x, state):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y.contiguous().view(-1, self.hidden)), state


model = CharLSTM(len(chars), 64)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for step in range(120):
    x, y = data[:-1].unsqueeze(0), data[1:]
    output, _ = model(x, model.init_hidden(1))
    loss = criterion(output, y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

with torch.no_grad():
    state, current, written = model.init_hidden(1), data[:1].view(1, 1), text[0]
    for _ in range(40):
        output, state = model(current, state)
        current = output.topk(1)[1].view(1, 1)
        written += chars[int(current)]
print(f"loss {loss.item():.3f}: {written}")
assert loss.item() < 0.2
assert written[:20] == text[:20]
