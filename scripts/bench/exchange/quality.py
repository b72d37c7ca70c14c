"""What the hooks do to gradients and to training."""

import itertools
import statistics

import torch
import torch.distributed as dist
from exchange_models import Products, TinyGpt, text_batch
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from ways import hooked

from dsc.exchange import ScaledHalf, scaled_half_hook


def accuracy(arguments, folder):
    """Relative error of the mean per layer, 60 layers with standard deviations from 1e-9 to 1e-3, no loss scaling."""
    stds = [10 ** (-9 + 6 * layer / 59) for layer in range(60)]
    shapes = [(4096,)] * 60
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rows = []
    for name, hook in (
        ("PyTorch fp16 hook", default_hooks.fp16_compress_hook),
        ("PyTorch bf16 hook", default_hooks.bf16_compress_hook),
        ("dsc scaled fp16", scaled_half_hook),
    ):
        model = Products(shapes)
        # About four layers per bucket, as layers of one depth have gradients of one size.
        ddp = DistributedDataParallel(model, bucket_cap_mb=0.06)
        ddp.register_comm_hook(ScaledHalf(model.parameters()) if hook is scaled_half_hook else None, hook)
        for step in range(4):
            drawn = [
                [torch.randn(4096, generator=torch.Generator().manual_seed(step * 1000 + q * 100 + at)) * std
                 for at, std in enumerate(stds)]
                for q in range(ranks)
            ]
            ddp.zero_grad()
            ddp(drawn[rank]).backward()
        means = [sum(values).double() / ranks for values in zip(*[[v.double() for v in d] for d in drawn])]
        found = [parameter.grad.double() for parameter in model.parameters()]
        errors = [((f - m).norm() / m.norm()).item() for f, m in zip(found, means)]
        # Values too large to be rounded away that are zero nevertheless.
        zeroed = sum(int(((f == 0) & (m.abs() > 4e-3 * s)).sum()) for f, m, s in zip(found, means, stds))
        rows.append({
            "name": name, "worst": max(errors), "median": statistics.median(errors), "zeroed": zeroed / (60 * 4096),
        })
    return rows


def convergence(arguments, folder):
    """A small GPT, trained with fp32 DDP and with dsc's hooks from the same start on the same data, with each seed."""
    losses = {"fp32": [], "scaled fp16": [], "int8": []}
    hooks = {"fp32": None, "scaled fp16": "scaled", "int8": "int8"}
    for seed, name in itertools.product(range(1, arguments.seeds + 1), losses):
        torch.manual_seed(seed)
        model = TinyGpt()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        ddp, *_ = hooked(model, hooks[name], {"bucket_cap_mb": 0.1})
        for step in range(arguments.gpt_steps):
            words, following = text_batch(seed * 1_000_000 + step, dist.get_rank())
            optimizer.zero_grad()
            cross_entropy(ddp(words).flatten(0, 1), following.flatten()).backward()
            optimizer.step()
        # The same held-out text on both ranks.
        with torch.no_grad():
            held = [text_batch(100_000 + index, 0) for index in range(20)]
            held_losses = [cross_entropy(model(w).flatten(0, 1), f.flatten()).item() for w, f in held]
            losses[name].append(statistics.mean(held_losses))
    return {"steps": arguments.gpt_steps, **losses}
