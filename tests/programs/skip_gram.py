"""Word vectors by skip-gram with negative sampling, in the style of old programs."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable

random.seed(0)
torch.manual_seed(2)
GROUPS = [
    ["cat", "dog", "cow", "pig"],
    ["red", "blue", "green", "pink"],
    ["one", "two", "six", "ten"],
]
vocab = [w for g in GROUPS for w in g]
index = {w: i for i, w in enumerate(vocab)}
pairs = [(index[a], index[b]) for g in GROUPS for a in g for b in g if a != b] * 20
random.shuffle(pairs)


class SkipGram(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.u = nn.Embedding(size, width, sparse=True)
        self.v = nn.Embedding(size, width, sparse=True)
        self.u.weight.data.uniform_(-0.5 / width, 0.5 / width)
        self.v.weight.data.uniform_(-0, 0)

    def forward(self, center, context, negative):
        u, v, n = self.u(center), self.v(context), self.v(negative)
        score = F.logsigmoid(torch.sum(torch.mul(u, v), dim=1)).squeeze()
        wrong = F.logsigmoid(-1 * torch.bmm(n, u.unsqueeze(2)).squeeze())
        return -1 * (torch.sum(score) + torch.sum(wrong)) / center.size()[0]


use_cuda = torch.cuda.is_available()
model = SkipGram(len(vocab), 8)
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
for epoch in range(10):
    for at in range(0, len(pairs), 40):
        batch = pairs[at : at + 40]
        center = Variable(torch.LongTensor([a for a, _ in batch]))
        context = Variable(torch.LongTensor([b for _, b in batch]))
        negative = Variable(torch.randint(len(vocab), size=(len(batch), 4)).type(torch.LongTensor))
        if use_cuda:
            center, context, negative = center.cuda(), context.cuda(), negative.cuda()
        optimizer.zero_grad()
        loss = model(center, context, negative)
        loss.backward()
        optimizer.step()
vectors = F.normalize(model.u.weight.data)
alike = vectors @ vectors.t()
same = sum(alike[index[a], index[b]].item() for g in GROUPS for a in g for b in g if a != b) / 36
rest = (alike.sum().item() - 12 - 36 * same) / 96
print(f"loss {loss.item():.3f}, same group {same:.2f}, others {rest:.2f}")
assert same > rest + 0.25
