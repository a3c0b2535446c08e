"""Deep Q-learning of a walk along a line, with replay memory and a target network."""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
random.seed(1)
torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SIZE = 8


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


def one_hot(place):
    x = torch.zeros(1, SIZE, device=device)
    x[0, place] = 1
    return x


def net():
    return nn.Sequential(nn.Linear(SIZE, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)


policy_net, target_net = net(), net()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
memory = ReplayMemory(1000)


def optimize_model():
    if len(memory) < 32:
        return
    batch = Transition(*zip(*memory.sample(32)))
    mask = torch.tensor([s is not None for s in batch.next_state], device=device, dtype=torch.bool)
    going = torch.cat([s for s in batch.next_state if s is not None])
    states, actions = torch.cat(batch.state), torch.cat(batch.action)
    values = policy_net(states).gather(1, actions)
    following = torch.zeros(32, device=device)
    with torch.no_grad():
        following[mask] = target_net(going).max(1).values
    expected = following * 0.9 + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


for episode in range(60):
    place = 0
    for step in range(40):
        if random.random() < 0.3:
            action = torch.tensor([[random.randrange(2)]], device=device, dtype=torch.long)
        else:
            with torch.no_grad():
                action = policy_net(one_hot(place)).max(1).indices.view(1, 1)
        after = max(0, place + (1 if action.item() == 1 else -1))
        done = after == SIZE - 1
        reward = torch.tensor([1.0 if done else 0.0], device=device)
        memory.push(one_hot(place), action, None if done else one_hot(after), reward)
        place = after
        optimize_model()
        state = target_net.state_dict()
        for key, value in policy_net.state_dict().items():
            state[key] = value * 0.05 + state[key] * 0.95
        target_net.load_state_dict(state)
        if done:
            break
with torch.no_grad():
    choices = [policy_net(one_hot(p)).argmax().item() for p in range(SIZE - 1)]
print(f"choices {choices}")
assert choices == [1] * (SIZE - 1)
