"""What the ranks of the exchange benchmark compute: layers on the processor, or a device that is waited for."""

import time

import torch
from torch import nn


def layers(width, count):
    """14 × Linear(1024) and a head: 56 MiB of gradients at the full size."""
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(count)], nn.Linear(width, 10))


class Waiting(torch.autograd.Function):
    """A layer whose gradients a device computes: for `seconds` the host only waits for them."""

    @staticmethod
    def forward(ctx, values, weight, bias, seconds, gradients):
        ctx.seconds, ctx.gradients = seconds, gradients
        return values.clone()

    @staticmethod
    def backward(ctx, upstream):
        time.sleep(ctx.seconds)
        return upstream, *ctx.gradients, None, None


class WaitingLayer(nn.Linear):
    def __init__(self, width, seconds):
        super().__init__(width, width)
        self.seconds = seconds
        self.gradients = [torch.randn_like(value) for value in self.parameters()]

    def forward(self, values):
        return Waiting.apply(values, self.weight, self.bias, self.seconds, self.gradients)


def build_load(arguments, load):
    """A model and its input for `batch:N`, layers that the processor computes, or `wait:MS`, those of a device."""
    kind, amount = load.split(":")
    if kind == "batch":
        return lambda: layers(arguments.width, arguments.layers), torch.randn(int(amount), arguments.width)
    seconds = float(amount) / 1000 / arguments.layers

    def waiting():
        return nn.Sequential(*[WaitingLayer(arguments.width, seconds) for _ in range(arguments.layers)])

    # A gradient for the first layer's input: without one its backward is not called.
    return waiting, torch.randn(1, arguments.width, requires_grad=True)
