"""Training loops that do more than a plain step: each class is one variant of it."""

import copy

import torch
from memory_networks import Block, loss_of
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

WIDTH = 32


def tokens():
    return torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(5))


class Blocks(nn.Module):
    """A small language model whose head is its embedding: weights are tied in every variant."""

    def __init__(self, blocks=6, make=lambda: Block(WIDTH, 4)):
        super().__init__()
        self.embedding = nn.Embedding(64, WIDTH)
        self.blocks = nn.ModuleList([make() for _ in range(blocks)])
        self.head = nn.Linear(WIDTH, 64, bias=False)
        self.head.weight = self.embedding.weight

    def run_blocks(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, tokens):
        return self.head(self.run_blocks(self.embedding(tokens)))


class Plain:
    """A training of a few steps; what the classes below say otherwise is the variant."""

    ways = ("recompute", "fit")
    budgets = "60%", "75%"  # of a plan that recomputes, and of one that moves
    is_recomputed = True

    def make(self):
        return Blocks()

    def trained(self, model):
        return model

    def compute(self, model):
        return loss_of(self.trained(model)(tokens()))

    def backward(self, model, loss):
        loss.backward()

    def before_step(self, model):
        """What else happens in the loop."""

    def is_stepping(self, at):
        """Whether the optimizer steps after step `at`."""
        return True

    def results(self, model):
        """What else must be equal in the end."""
        return []


def of_blocks(forward, **attributes):
    """A model of blocks with a forward of their own, called as `forward(block, plain, x)`."""

    class Own(Block):
        def forward(self, x):
            return forward(self, super().forward, x)

    for name, value in attributes.items():
        setattr(Own, name, value)
    return Blocks(6, lambda: Own(WIDTH, 4))


class CalledTwice(Plain):
    def make(self):
        model = Blocks(5)
        model.blocks[4] = model.blocks[1]
        model.blocks[3] = nn.Sequential(model.blocks[2], model.blocks[3])
        return model


class Hooks(Plain):
    def make(self):
        model = Blocks()
        self.gradients = []
        for block in model.blocks:
            block.fc1.register_forward_hook(lambda module, args, output: output * 1.1)
            block.register_forward_pre_hook(lambda module, args: (args[0] * 0.9,))
            block.fc2.register_full_backward_hook(lambda module, gave, given: (gave[0] * 1.1,))
            block.register_full_backward_hook(lambda module, gave, given: self.gradients.append(gave[0].clone()))
            block.register_full_backward_pre_hook(lambda module, given: (given[0] * 0.8,))
        return model

    def results(self, model):
        return self.gradients


class TensorHooks(Plain):
    def make(self):
        self.gradients = []

        def forward(block, plain, x):
            y = plain(x)
            y.register_hook(lambda grad: grad * 1.25)
            z = torch.tanh(y)
            z.register_hook(lambda grad: self.gradients.append(grad.clone()))
            return z

        return of_blocks(forward)

    def results(self, model):
        return self.gradients


class PartWithoutGradients(Plain):
    def make(self):
        class Part(Blocks):
            def run_blocks(self, x):
                with torch.no_grad():
                    x = self.blocks[1](self.blocks[0](x))
                for block in self.blocks:
                    x = block(x)
                    with torch.no_grad():
                        self.blocks[0](x)
                return x

        return Part()


class Frozen(Plain):
    def make(self):
        model = Blocks(8).requires_grad_(False)
        for block in model.blocks[3:]:
            block.fc2.requires_grad_(True)
        return model


class Teacher(Plain):
    """Distillation, with a third model that is the student itself."""

    def make(self):
        student = Blocks()
        return nn.ModuleDict({"student": student, "teacher": copy.deepcopy(student)})

    def trained(self, model):
        return model["student"]

    def compute(self, model):
        with torch.no_grad():
            target = model["teacher"](tokens()) + model["student"](tokens())
        return (model["student"](tokens()) - target).square().mean()


class TwoForwards(Plain):
    def compute(self, model):
        return (model(tokens()) - model(tokens().flip(0))).square().mean()


class Autocast(Plain):
    def compute(self, model):
        with torch.autocast("cpu", torch.bfloat16):
            return super().compute(model)


class Accumulating(Plain):
    def is_stepping(self, at):
        return at % 2 == 1


class TwiceThroughOneGraph(Plain):
    ways = ("recompute", "move")

    def backward(self, model, loss):
        loss.backward(retain_graph=True)
        loss.backward()


class GradientOfGradients(Plain):
    ways = ("recompute", "move")
    budgets = "80%", "85%"

    def compute(self, model):
        with sdpa_kernel(SDPBackend.MATH):
            return super().compute(model)

    def backward(self, model, loss):
        with sdpa_kernel(SDPBackend.MATH):
            gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
            (loss + 1e-4 * sum(gradient.square().sum() for gradient in gradients)).backward()


class GradientPenalty(Plain):
    ways = ("recompute", "move")
    budgets = "90%", "90%"
    is_recomputed = False

    def compute(self, model):
        x = model.embedding(tokens())
        with sdpa_kernel(SDPBackend.MATH):
            out = model.run_blocks(x)
            (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return loss_of(out) + gradient.square().mean()


class FailingForward(Plain):
    def before_step(self, model):
        handle = model.blocks[3].fc1.register_forward_hook(lambda module, args, output: 1 // 0)
        try:
            self.compute(model)
        except ZeroDivisionError:
            handle.remove()


class Evaluating(Plain):
    def before_step(self, model):
        model.eval()
        with torch.no_grad():
            self.seen = model(tokens())
        model.train()

    def results(self, model):
        return [self.seen]


class CopiedInTheForward(Plain):
    """An average of the weights, made and used where the loss is computed."""

    def compute(self, model):
        self.average = copy.deepcopy(model)
        self.average.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()})
        return (model(tokens()) - self.average(tokens())).square().mean()

    def results(self, model):
        return [x for parameter in self.average.parameters() for x in (parameter, parameter.grad)]


def list_variants(names):
    """The variants among the values of a module, by name."""
    return {k.__name__: k for k in list(names.values()) if isinstance(k, type) and issubclass(k, Plain)}
