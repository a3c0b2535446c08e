"""Fit a forgetting curve to reviews: parameters in bounds, packed sequences of intervals."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Reviews(Dataset):
    """Intervals between reviews, in days, and whether the last was recalled."""

    def __init__(self, count):
        self.items = []
        for _ in range(count):
            days = torch.rand(int(torch.randint(2, 6, (1,)))) * 4 + 0.2
            stability = 1.0
            for d in days[:-1]:
                stability *= 1.0 + 0.5 * float(d) ** 0.3
            chance = torch.tensor(0.9) ** (days[-1] / stability)
            self.items.append((days, torch.bernoulli(chance)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    days, recalled = zip(*batch)
    lengths = torch.tensor([len(d) for d in days])
    return pad_sequence(days, batch_first=True), lengths, torch.stack(recalled)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.5, 0.1, 0.6]))

    def forward(self, days, lengths):
        stability = self.w[0].expand(days.size(0))
        for step in range(days.shape[1] - 1):
            grown = stability * (1.0 + self.w[1] * days[:, step].clamp(min=1e-3) ** self.w[2])
            stability = torch.where(step < lengths - 1, grown, stability)
        last = days.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        return torch.exp(torch.log(torch.tensor(0.9)) * last / stability)


class Clipper:
    def __call__(self, module):
        if hasattr(module, "w"):
            w = module.w.data
            w[0] = w[0].clamp(0.1, 10)
            w[1] = w[1].clamp(0.01, 2)
            w[2] = w[2].clamp(0.1, 1)
            module.w.data = w


loader = DataLoader(Reviews(2000), batch_size=256, shuffle=True, collate_fn=collate)
model, clipper = Model(), Clipper()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8 * len(loader))
loss_fn = nn.BCELoss(reduction="none")
history = []
for epoch in range(8):
    total = 0.0
    for days, lengths, recalled in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(days, lengths), recalled).mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        model.apply(clipper)
        total += loss.item() * len(recalled)
    history.append(total / 2000)
print(f"loss {history[0]:.4f} -> {history[-1]:.4f}, w {[round(v, 2) for v in model.w.tolist()]}")
assert history[-1] <= history[0]
assert abs(model.w[0].item() - 1.0) < 0.5
