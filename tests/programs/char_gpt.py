"""Train a small GPT to copy the first half of a sequence into the second."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(0)


@dataclass
class Config:
    vocab: int = 8
    block: int = 12
    layers: int = 2
    heads: int = 2
    width: int = 32


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.qkv, self.proj = nn.Linear(c.width, 3 * c.width), nn.Linear(c.width, c.width)
        self.heads = c.heads
        mask = torch.tril(torch.ones(c.block, c.block)).view(1, 1, c.block, c.block)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, t, w = x.size()
        q, k, v = self.qkv(x).split(w, dim=2)
        q, k, v = (z.view(b, t, self.heads, w // self.heads).transpose(1, 2) for z in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, w))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c.width), nn.LayerNorm(c.width)
        self.attn = Attention(c)
        self.mlp = nn.Sequential(
            nn.Linear(c.width, 4 * c.width), nn.GELU(), nn.Linear(4 * c.width, c.width)
        )

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tokens = nn.Embedding(c.vocab, c.width)
        self.places = nn.Parameter(torch.zeros(1, c.block, c.width))
        self.blocks = nn.ModuleList([Block(c) for _ in range(c.layers)])
        self.ln, self.head = nn.LayerNorm(c.width), nn.Linear(c.width, c.vocab, bias=False)
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        x = self.tokens(idx) + self.places[:, : idx.size(1)]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
            )
        return logits, loss


config = Config()
model = GPT(config)
decay = [p for p in model.parameters() if p.dim() >= 2]
other = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}],
    lr=5e-3,
    betas=(0.9, 0.95),
)
for step in range(300):
    half = torch.randint(config.vocab, (64, config.block // 2))
    whole = torch.cat([half, half], dim=1)
    x, y = whole[:, :-1], whole[:, 1:].clone()
    y[:, : config.block // 2 - 1] = -1
    logits, loss = model(x, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
picked = logits.argmax(-1)[:, config.block // 2 - 1 :]
accuracy = (picked == y[:, config.block // 2 - 1 :]).float().mean().item()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
assert accuracy > 0.95
