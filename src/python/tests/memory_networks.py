"""Small networks with what makes memory plans hard: residuals, views, dropout, batch norm, attention."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.act, self.drop = nn.GELU(), nn.Dropout(0.1)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        x = x + self.drop(self.proj(y))
        return x + self.fc2(self.act(self.fc1(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, width=64, blocks=4, vocabulary=64, context=32):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(context, width))
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(blocks)])
        self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def convnet():
    layers, channels = [], 3
    for out in (16, 16, 32, 32, 64):
        stride = 2 if out > channels > 3 else 1
        layers += [nn.Conv2d(channels, out, 3, padding=1, stride=stride), nn.BatchNorm2d(out), nn.ReLU()]
        channels = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Mixture(nn.Module):
    """One layer of every kind that writes its gradient into its map, some of whose maps others read, too."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Conv2d(16, 16, 3, padding=1)
        )
        self.wide = nn.Conv1d(16, 32, 1)
        self.acts = nn.ModuleList([nn.GELU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.LeakyReLU(), nn.ReLU6()])
        self.linears = nn.ModuleList([nn.Linear(32, 32, bias=bool(i % 2)) for i in range(6)])
        self.norm = nn.LayerNorm(32)
        self.out = nn.Parameter(torch.randn(32, 4)), nn.Parameter(torch.zeros(4))
        self.weight, self.bias = self.out

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = self.wide(x.flatten(2)).transpose(1, 2).contiguous()
        for act, linear in zip(self.acts, self.linears):
            x = x + act(linear(self.norm(x)))
        return torch.addmm(self.bias, torch.tanh(x).view(-1, 32), self.weight)


def loss_of(output):
    return output.square().mean()


NETWORKS = {
    "gpt": (GPT, lambda batch: torch.randint(0, 64, (batch, 32))),
    "convnet": (convnet, lambda batch: torch.randn(batch, 3, 32, 32)),
    "mixture": (Mixture, lambda batch: torch.randn(batch, 3, 8, 8)),
}


def fresh(name, batch=8):
    """The same network and batch at every call."""
    make, batch_of = NETWORKS[name]
    torch.manual_seed(0)
    return make(), batch_of(batch)
