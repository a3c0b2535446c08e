"""Fit a Gaussian process to a sine by its marginal likelihood."""

import math

import torch
from torch.distributions import MultivariateNormal

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 20)
y = torch.sin(2 * math.pi * x) + 0.1 * torch.randn(20)
log_length, log_scale, log_noise = (torch.zeros(1, requires_grad=True) for _ in range(3))


def kernel(a, b):
    distance = (a[:, None] - b[None, :]) / log_length.exp()
    return log_scale.exp() * torch.exp(-0.5 * distance**2)


def covariance():
    return kernel(x, x) + (log_noise.exp() + 1e-6) * torch.eye(len(x))


optimizer = torch.optim.LBFGS(
    [log_length, log_scale, log_noise], max_iter=50, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    loss = -MultivariateNormal(torch.zeros(len(x)), covariance()).log_prob(y)
    loss.backward()
    return loss


before = closure().item()
optimizer.step(closure)
after = closure().item()
with torch.no_grad():
    grid = torch.linspace(0, 1, 50)
    factor = torch.linalg.cholesky(covariance())
    mean = kernel(grid, x) @ torch.cholesky_solve(y[:, None], factor)
    error = (mean[:, 0] - torch.sin(2 * math.pi * grid)).abs().max().item()
print(f"loss {before:.2f} -> {after:.2f}, noise {log_noise.exp().item():.4f}, error {error:.3f}")
assert after < before - 5
assert error < 0.3
