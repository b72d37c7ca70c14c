"""Blocks that are given, return, change and hold more than tensors, or recompute by themselves: variants of a step."""

import dataclasses
import random

import torch
from memory_networks import Block
from memory_variants import WIDTH, Blocks, Plain, of_blocks
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclasses.dataclass
class State:
    x: torch.Tensor
    notes: list


class Nested(Plain):
    """Blocks that are given and return nests of tuples and dicts, and dataclasses."""

    def make(self):
        class InTuples(Block):
            def forward(self, given):
                x, (y, count) = given
                return super().forward(x) + y, (x, count + 1)

        class InDicts(Block):
            def forward(self, given):
                return {"x": super().forward(given["x"]), "count": given["count"] + 1}

        class InObjects(nn.Module):  # is left alone, what is in it not
            def __init__(self):
                super().__init__()
                self.block = Block(WIDTH, 4)

            def forward(self, given):
                return State(self.block(given.x), [*given.notes, 1])

        class Net(Blocks):
            def run_blocks(self, x):
                x, (y, count) = self.blocks[1](self.blocks[0]((x, (x, 0))))
                given = self.blocks[3](self.blocks[2]({"x": (x + y) / 4, "count": count}))
                return self.blocks[5](self.blocks[4](State(given["x"] * given["count"] / 4, []))).x

        kinds = iter([InTuples, InDicts, InObjects])
        made = {}

        def make():
            at = len(made)
            made[at] = next(kinds) if at % 2 == 0 else made[at - 1]
            return made[at]() if made[at] is InObjects else made[at](WIDTH, 4)

        return Net(6, make)


class SkipsInAList(Plain):
    """A U-Net's way: blocks append to a list that the model hands on."""

    is_recomputed = False

    def make(self):
        class Down(Block):
            def forward(self, x, skips):
                x = super().forward(x)
                skips.append(x)
                return x

        class Up(Block):
            def forward(self, x, skips):
                return super().forward(x + skips.pop())

        class Net(Blocks):
            def run_blocks(self, x):
                skips = []
                for block in self.blocks:
                    x = block(x, skips)
                return x

        kinds = iter([Down] * 3 + [Up] * 3)
        return Net(6, lambda: next(kinds)(WIDTH, 4))


class NotesInADict(Plain):
    is_recomputed = False

    def make(self):
        class Noting(Block):
            def forward(self, x, notes):
                notes["sum"] = notes.get("sum", 0) + x.square().mean()
                return super().forward(x)

        class Net(Blocks):
            def run_blocks(self, x):
                notes = {}
                for block in self.blocks:
                    x = block(x, notes)
                return x + 0.01 * notes["sum"]

        return Net(6, lambda: Noting(WIDTH, 4))


class Attributes(Plain):
    """A loss that blocks leave in an attribute, as mixtures of experts do, a counter, and what depends on it."""

    def make(self):
        def forward(block, plain, x):
            block.calls += 1
            block.scale = block.scale * 1.01
            block.loss = x.square().mean()
            return plain(x * block.scale) * (1 + 0.01 * block.calls)

        return of_blocks(forward, calls=0, scale=torch.ones(()))

    def compute(self, model):
        return super().compute(model) + sum(block.loss for block in model.blocks)

    def results(self, model):
        return [value for block in model.blocks for value in (torch.tensor(block.calls), block.scale)]


class HeldByAttributes(Plain):
    is_recomputed = False

    def make(self):
        def forward(block, plain, x):
            block.history.append(len(block.history))
            block.scale.mul_(1.01)
            return plain(x * block.scale * len(block.history))

        model = of_blocks(forward)
        for block in model.blocks:
            block.history, block.scale = [], torch.ones(())
        return model


class PythonsRandom(Plain):
    is_recomputed = False

    def make(self):
        return of_blocks(lambda block, plain, x: plain(x * random.random()))


class OwnGenerator(Plain):
    is_recomputed = False

    def make(self):
        model = of_blocks(lambda block, plain, x: plain(x * torch.rand(x.shape, generator=block.generator)))
        for block in model.blocks:
            block.generator = torch.Generator().manual_seed(3)
        return model


class OwnCheckpointInside(Plain):
    budgets = "85%", "75%"
    is_reentrant = False

    def make(self):
        outer = self

        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = Block(WIDTH, 4), Block(WIDTH, 4)

            def forward(self, x):
                return self.two(checkpoint(self.one, x, use_reentrant=outer.is_reentrant))

        return Blocks(4, Pair)


class OwnReentrantCheckpointInside(OwnCheckpointInside):
    is_reentrant = True


class NestedCheckpoints(Plain):
    budgets = "100%", "100%"
    is_recomputed = False

    def make(self):
        class Net(Blocks):
            def run_blocks(self, x):
                for at in (0, 2, 4):
                    x = checkpoint(self.run_pair, at, x, use_reentrant=False)
                return x

            def run_pair(self, at, x):
                return self.blocks[at + 1](checkpoint(self.blocks[at], x, use_reentrant=False))

        return Net()
