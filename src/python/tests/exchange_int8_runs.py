"""Models with given gradients under the hook of block-wise int8."""

import torch
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import BlockwiseInt8, blockwise_int8_hook

SHAPES = [(300, 20), (3,), (50, 50), (256,), (0, 7), (1001,), (64, 64)]
CAP_MB = 0.02  # several buckets


def wrap(model, cap=CAP_MB):
    ddp = DistributedDataParallel(model, bucket_cap_mb=cap)
    ddp.register_comm_hook(BlockwiseInt8(), blockwise_int8_hook)
    return ddp


def draw(rank, step, stds):
    generator = torch.Generator().manual_seed(step * 100 + rank)
    return [torch.randn(shape, generator=generator) * std for shape, std in zip(SHAPES, stds)]


def exchange(ddp, given):
    ddp.zero_grad()
    ddp(given).backward()
    return [parameter.grad.clone() for parameter in ddp.parameters()]
