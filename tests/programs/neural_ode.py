"""Learn the field of a spiral from one trajectory, through a Runge-Kutta solver."""

import torch
import torch.nn as nn

torch.manual_seed(0)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
start = torch.tensor([[2.0, 0.0]])
times = torch.linspace(0.0, 3.0, 31)


def odeint(field, y, t):
    path = [y]
    for a, b in zip(t[:-1], t[1:]):
        h = b - a
        k1 = field(y)
        k2 = field(y + h / 2 * k1)
        k3 = field(y + h / 2 * k2)
        k4 = field(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(y)
    return torch.stack(path)


with torch.no_grad():
    true = odeint(lambda y: y.mm(matrix), start, times)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, y):
        return self.net(y)


field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=2e-2)
for step in range(250):
    at = torch.randint(0, 21, (16,))
    wanted = torch.stack([true[at + i] for i in range(11)])
    loss = torch.mean(torch.abs(odeint(field, true[at].squeeze(1), times[:11]) - wanted.squeeze(2)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
error = torch.mean(torch.abs(odeint(field, start, times) - true)).item()
print(f"loss {loss.item():.3f}, error of the whole path {error:.3f}")
assert error < 0.3
