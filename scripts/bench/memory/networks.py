"""The networks of the table: a GPT and a ResNet-50, made of blocks of which some may be checkpointed."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Blocks(nn.Module):
    """A head, blocks, a tail. The first ``checkpointed`` blocks keep only their input and run again in backward."""

    def __init__(self, head, blocks, tail):
        super().__init__()
        self.head, self.blocks, self.tail = head, nn.ModuleList(blocks), tail
        self.checkpointed = 0

    def forward(self, x):
        x = self.head(x)
        for at, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=False) if at < self.checkpointed else block(x)
        return self.tail(x)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, w))


class Residual(nn.Module):
    def __init__(self, body, skip=None, after=None):
        super().__init__()
        self.body, self.skip, self.after = body, skip or nn.Identity(), after or nn.Identity()

    def forward(self, x):
        return self.after(self.skip(x) + self.body(x))


def gpt(width, blocks, context, batch, vocabulary):
    def block():
        mix = nn.Sequential(nn.LayerNorm(width), Attention(width, max(1, width // 64)))
        wide = [nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)]
        return nn.Sequential(Residual(mix), Residual(nn.Sequential(*wide)))

    tail = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))
    model = Blocks(nn.Embedding(vocabulary, width), [block() for _ in range(blocks)], tail)
    return model, torch.randint(0, vocabulary, (batch, context))


def resnet50(pixels, batch, width=64, stages=(3, 4, 6, 3)):
    def norm(inner, outer, kernel, stride=1):
        return [nn.Conv2d(inner, outer, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outer)]

    def block(inner, middle, stride):
        body = [*norm(inner, middle, 1), nn.ReLU(), *norm(middle, middle, 3, stride), nn.ReLU()]
        skip = None if inner == 4 * middle else nn.Sequential(*norm(inner, 4 * middle, 1, stride))
        return Residual(nn.Sequential(*body, *norm(middle, 4 * middle, 1)), skip, nn.ReLU())

    head = nn.Sequential(*norm(3, width, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks, inner = [], width
    for stage, count in enumerate(stages):
        for at in range(count):
            blocks.append(block(inner, width << stage, 2 if stage > 0 and at == 0 else 1))
            inner = 4 * (width << stage)
    tail = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, 1000))
    return Blocks(head, blocks, tail), torch.randn(batch, 3, pixels, pixels)


NETWORKS = {
    "cuda": {
        "GPT, 12 × 2048, batch 8 × 1024": lambda: gpt(2048, 12, 1024, 8, 50257),
        "ResNet-50, batch 64": lambda: resnet50(224, 64),
    },
    "cpu": {
        "GPT, 4 × 64, batch 8 × 32": lambda: gpt(64, 4, 32, 8, 64),
        "ResNet, 5 blocks, batch 2": lambda: resnet50(48, 2, 8, (2, 2, 1)),
    },
}
