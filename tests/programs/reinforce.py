"""Balance a pole with REINFORCE, in an environment of a few lines."""

import math

import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical

torch.manual_seed(2)


class CartPole:
    """The classic cart and pole (Barto, Sutton and Anderson 1983)."""

    def reset(self):
        self.state = [float(v) for v in torch.rand(4) * 0.1 - 0.05]
        self.steps = 0
        return self.state

    def step(self, action):
        x, v, a, w = self.state
        force = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(a), math.cos(a)
        push = (force + 0.05 * w * w * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        move = push - 0.05 * turn * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * move, a + 0.02 * w, w + 0.02 * turn]
        self.steps += 1
        fallen = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state, fallen or self.steps >= 200


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 64)
        self.affine2 = nn.Linear(64, 2)

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), dim=-1)


env, policy = CartPole(), Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
lengths = []
for episode in range(150):
    state, done, logs, rewards = env.reset(), False, [], []
    while not done:
        m = Categorical(policy(torch.tensor(state)))
        action = m.sample()
        logs.append(m.log_prob(action))
        state, done = env.step(action.item())
        rewards.append(1.0)
    returns, total = [], 0.0
    for r in rewards[::-1]:
        total = r + 0.99 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = -(torch.stack(logs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lengths.append(len(rewards))
early, late = sum(lengths[:20]) / 20, max(sum(lengths[i : i + 20]) / 20 for i in range(130))
print(f"length {early:.0f} -> {late:.0f}")
assert late > 2 * early
