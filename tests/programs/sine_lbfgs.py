"""Continue sine waves with LSTM cells trained by LBFGS."""

import math

import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
starts = torch.rand(8, 1) * 4
wave = torch.sin((torch.arange(60).view(1, -1) * 0.25) + starts)


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 16)
        self.lstm2 = nn.LSTMCell(16, 16)
        self.linear = nn.Linear(16, 1)

    def forward(self, input, future=0):
        outputs = []
        h1 = c1 = h2 = c2 = torch.zeros(input.size(0), 16, dtype=torch.double)
        output = input[:, :1]
        for step in input.split(1, dim=1):
            h1, c1 = self.lstm1(step, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        for _ in range(future):
            h1, c1 = self.lstm1(output, (h1, c1))
            h2, c2 = self.lstm2(h1, (h2, c2))
            output = self.linear(h2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


model, criterion = Sequence(), nn.MSELoss()
optimizer = optim.LBFGS(model.parameters(), lr=0.8, max_iter=20)
known, target = wave[:, :40], wave[:, 1:41]
for step in range(4):

    def closure():
        optimizer.zero_grad()
        loss = criterion(model(known), target)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
with torch.no_grad():
    future = model(known, future=10)[:, 40:]
    error = criterion(future, wave[:, 41:51]).item()
print(f"first loss of the last step {loss.item():.5f}, error of the future {error:.4f}")
assert math.isfinite(error)
assert loss.item() < 0.01
