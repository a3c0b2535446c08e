"""Logistic regression by Newton's method with the Hessian, then Hamiltonian Monte Carlo."""

import torch
from torch.autograd.functional import hessian
from torch.distributions import Bernoulli, Normal

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
true = torch.tensor([1.5, -2.0, 0.5])
x = torch.cat([torch.randn(300, 2), torch.ones(300, 1)], dim=1)
y = Bernoulli(logits=x @ true).sample()


def energy(w):
    return -Bernoulli(logits=x @ w).log_prob(y).sum() - Normal(0.0, 10.0).log_prob(w).sum()


w = torch.zeros(3)
for _ in range(8):
    leaf = w.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(energy(leaf), leaf)
    w = w - torch.linalg.solve(hessian(energy, w), slope)
spread = torch.linalg.inv(hessian(energy, w)).diagonal().sqrt()

position, samples, accepted = w.clone(), [], 0
for _ in range(150):
    momentum = torch.randn(3)
    q, p = position.clone(), momentum.clone()
    for step in range(10):
        leaf = q.detach().requires_grad_()
        (slope,) = torch.autograd.grad(energy(leaf), leaf)
        p = p - (0.025 if step == 0 else 0.05) * slope
        q = (q + 0.05 * p).detach()
    leaf = q.detach().requires_grad_()
    p = p - 0.025 * torch.autograd.grad(energy(leaf), leaf)[0]
    old = energy(position) + 0.5 * momentum.dot(momentum)
    new = energy(q) + 0.5 * p.dot(p)
    if torch.rand(1).log() < (old - new):
        position, accepted = q.detach(), accepted + 1
    samples.append(position)
samples = torch.stack(samples)
away = ((samples.mean(0) - w).abs() / spread).max().item()
print(
    f"newton {[round(v, 2) for v in w.tolist()]}, accepted {accepted}, {away:.2f} deviations apart"
)
assert (w - true).abs().max() < 4 * spread.max()
assert accepted > 100
assert away < 1.0
