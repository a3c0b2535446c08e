"""Solve u'' = -pi^2 sin(pi x) with a network whose derivatives are in the loss."""

import math

import torch
from torch import autograd, nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.998)
ends = torch.tensor([[0.0], [1.0]])
for step in range(600):
    x = torch.rand(64, 1, requires_grad=True)
    u = model(x)
    du = autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
    ddu = autograd.grad(du, x, torch.ones_like(du), create_graph=True)[0]
    residual = ddu + math.pi**2 * torch.sin(torch.pi * x)
    loss = residual.pow(2).mean() + 100 * model(ends).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
with torch.no_grad():
    grid = torch.linspace(0, 1, 101).unsqueeze(1)
    error = (model(grid) - torch.sin(math.pi * grid)).abs().max().item()
print(f"largest error {error:.4f}")
assert error < 0.1
