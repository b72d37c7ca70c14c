"""Small models for the exchange's tests and benchmarks."""

import torch
from torch import nn


class Products(nn.Module):
    """Layers whose gradients can be chosen: the gradient of each weight is what stands in `given`."""

    def __init__(self, shapes):
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in shapes)

    def forward(self, given):
        return sum((weight * value).sum() for weight, value in zip(self.weights, given))


class TinyGpt(nn.Module):
    """Next-byte prediction: two blocks of causal attention."""

    def __init__(self, width=64, tokens=64, context=32, blocks=2):
        super().__init__()
        self.token = nn.Embedding(tokens, width)
        self.position = nn.Parameter(torch.zeros(context, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList(
            [layer]
            + [
                nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
                for _ in range(blocks - 1)
            ]
        )
        self.head = nn.Linear(width, tokens)
        self.register_buffer("mask", torch.triu(torch.full((context, context), float("-inf")), 1))

    def forward(self, words):
        hidden = self.token(words) + self.position
        for block in self.blocks:
            hidden = block(hidden, src_mask=self.mask, is_causal=True)
        return self.head(hidden)


def text_batch(step, rank, batch=8, context=32, tokens=64):
    """A made-up language: each word is a noisy function of the two before it."""
    generator = torch.Generator().manual_seed(step * 1000 + rank)
    words = torch.randint(0, tokens, (batch, context + 1), generator=generator)
    noise = torch.rand(batch, context + 1, generator=generator) < 0.1
    for at in range(2, context + 1):
        following = (words[:, at - 1] * 5 + words[:, at - 2] * 3 + 7) % tokens
        words[:, at] = torch.where(noise[:, at], words[:, at], following)
    return words[:, :-1], words[:, 1:]
