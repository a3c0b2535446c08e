"""Fit a variational autoencoder to points on a ring."""

import math

import torch
from torch import nn, optim
from torch.distributions import Normal, kl_divergence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
angles = torch.rand(2000) * 2 * math.pi
points = torch.stack([angles.cos(), angles.sin()], dim=1) + 0.05 * torch.randn(2000, 2)
loader = DataLoader(TensorDataset(points), batch_size=100, shuffle=True, drop_last=True)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, dim=-1)
        q = Normal(mean, (0.5 * log_var).exp())
        return self.decoder(q.rsample()), q


model = VAE()
optimizer = optim.Adam(model.parameters(), lr=3e-3)
first = last = None
for epoch in range(15):
    total = 0.0
    for (x,) in loader:
        reconstruction, q = model(x)
        kl = kl_divergence(q, Normal(torch.zeros_like(q.mean), torch.ones_like(q.mean)))
        error = ((reconstruction - x) ** 2).sum(-1) / (2 * 0.05**2)
        loss = (error + kl.sum(-1)).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    first = total if first is None else first
    last = total
samples = model.decoder(torch.randn(500, 2)).detach()
radius = samples.norm(dim=1).mean().item()
print(f"loss {first / 20:.1f} -> {last / 20:.1f}, radius {radius:.2f}")
assert last < first / 5
assert 0.7 < radius < 1.3
