"""Every variant of a training step, under plans that recompute, that move, and that `fit` makes: as without."""

import copy
import os
import pickle
import random

import pytest

torch = pytest.importorskip("torch")

import memory_variants  # noqa: E402
import memory_variants_of_blocks  # noqa: E402
from memory_networks import Block, loss_of  # noqa: E402
from memory_tools import ROOT, make_plan, node, one_thread, set_link, slow_gbs, under  # noqa: E402, F401
from memory_training import same  # noqa: E402
from memory_variants import WIDTH, Blocks, GradientPenalty, list_variants, tokens  # noqa: E402
from torch import nn  # noqa: E402

from dsc.memory import Offload, PlanError, fit  # noqa: E402
from dsc.memory.profiling.profiler import profile_step  # noqa: E402

VARIANTS = list_variants({**vars(memory_variants), **vars(memory_variants_of_blocks)})
STEPS = 3
FAST_GBS = 20.0


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("DSC_BIN", f"{node()} {os.path.join(ROOT, 'bin', 'dsc.js')}")


def fresh(kind):
    variant = kind()
    torch.manual_seed(0)
    random.seed(0)
    model = variant.make()
    return variant, model, variant.trained(model)


def plan_of(kind, way, folder):
    variant, model, trained = fresh(kind)
    made = profile_step(trained, lambda: variant.compute(model), held=[])
    set_link(made, slow_gbs(made) if way == "recompute" else FAST_GBS)
    if way == "recompute":
        return make_plan(made, folder, variant.budgets[0], "--recompute")[2]
    return make_plan(made, folder, variant.budgets[1])[2]


def train(kind, way, folder):
    """Losses, gradients and random numbers of every step, what the model ends as, and the executors."""
    path = plan_of(kind, way, folder) if way in ("recompute", "move") else None
    variant, model, trained = fresh(kind)
    executor = Offload(path, model=trained) if path else None
    step = fit(trained, budget=variant.budgets[1], smallest="1KiB")[1] if way == "fit" else None
    optimizer = torch.optim.SGD([p for p in trained.parameters() if p.requires_grad], lr=0.01)
    seen = []
    for at in range(STEPS):
        torch.manual_seed(at)
        random.seed(at)
        variant.before_step(model)
        if step is not None:
            loss = step(lambda: variant.compute(model))
        else:
            with under(executor):
                loss = variant.compute(model)
            variant.backward(model, loss)
        seen += [loss.detach().clone(), *(p.grad.clone() for p in trained.parameters() if p.grad is not None)]
        seen += [torch.rand(1), torch.tensor(random.random())]
        if variant.is_stepping(at):
            optimizer.step()
            optimizer.zero_grad()
    seen += [*model.parameters(), *model.buffers(), *variant.results(model)]
    return seen, [executor] if executor else step.executors if step else []


CASES = [(name, way) for name, kind in VARIANTS.items() for way in kind.ways]


@pytest.mark.parametrize(("name", "way"), CASES, ids=[f"{name}-{way}" for name, way in CASES])
def test_a_variant_of_a_step_is_as_without_a_plan(name, way, tmp_path):
    plain, _ = train(VARIANTS[name], "plain", tmp_path)
    found, executors = train(VARIANTS[name], way, tmp_path)
    assert all(value.isfinite().all() for value in plain)
    assert same(plain, found)
    assert all(executor.counts["planMisses"] == 0 for executor in executors)
    assert executors[0].counts["plannedSteps"] >= (1 if way == "fit" else STEPS)
    if way == "recompute":
        assert bool(executors[0].plan["recompute"]) == VARIANTS[name].is_recomputed
    for executor in executors:
        executor.close()


def test_a_loss_with_a_backward_of_its_own_is_refused_by_fit(tmp_path):
    variant, model, _ = fresh(GradientPenalty)
    _, step = fit(model, budget="90%", smallest="1KiB")
    with pytest.raises(PlanError, match="^the loss is computed with a backward of its own .*gradient penalty"):
        step(lambda: variant.compute(model))


def train_each_other(budget=None):
    """A maker and a judge, each with steps of its own in which the other takes part; what they end as."""
    torch.manual_seed(0)
    maker, judge = Blocks(4), nn.Sequential(nn.Linear(64, WIDTH), Block(WIDTH, 4), Block(WIDTH, 4), nn.Linear(WIDTH, 1))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in (maker, judge)]
    steps = [budget and fit(model, budget=budget, smallest="1KiB")[1] for model in (maker, judge)]

    def judge_made():
        with torch.no_grad():
            made = maker(tokens())
        return loss_of(judge(made)) + (judge(made.flip(0)) - 1).square().mean()

    def judge_making():
        return -judge(maker(tokens())).mean()

    for at in range(3):
        for step, optimizer, compute in zip(steps, optimizers, (judge_making, judge_made)):
            torch.manual_seed(at)
            if step:
                step(compute)
            else:
                compute().backward()
            optimizer.step()
            maker.zero_grad()
            judge.zero_grad()
    return [*maker.parameters(), *judge.parameters()], [one for step in steps if step for one in step.executors]


def test_two_models_that_train_each_other_have_plans_of_their_own():
    plain, _ = train_each_other()
    found, executors = train_each_other("80%")
    assert same(plain, found)
    assert [executor.counts["plannedSteps"] for executor in executors] == [2, 2]
    assert all(executor.counts["planMisses"] == 0 and executor.plan["moves"] for executor in executors)
    for executor in executors:
        executor.close()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("SkipsInAList", (["changes a list or dict that it is given"], [])),
        ("HeldByAttributes", (["changes what history holds"], [])),
        ("PythonsRandom", (["draws random numbers from Python's random, which torch does not draw again"], [])),
        ("OwnGenerator", (["changes what generator holds"], [])),
        ("Attributes", ([None], ["calls", "loss", "scale"])),
        ("Nested", ([None, "is given a State, which it may change"], [])),
        ("Hooks", ([None], [])),
    ],
)
def test_what_a_block_changes_is_recorded(name, found):
    variant, model, trained = fresh(VARIANTS[name])
    blocks = profile_step(trained, lambda: variant.compute(model), held=[])["blocks"]
    whole = [block for block in blocks if block["name"].count(".") == 1]
    obstacles = sorted({block.get("obstacle") for block in whole}, key=str)
    changed = {label.rpartition(".")[2] for block in whole for label in block["buffers"]}
    assert (obstacles, sorted(changed)) == (sorted(found[0], key=str), found[1])


def test_a_model_that_is_copied_in_the_forward_has_blocks_of_its_own(tmp_path):
    path = plan_of(memory_variants.Plain, "recompute", tmp_path)
    variant, model, _ = fresh(memory_variants.Plain)
    executor = Offload(path, model=model)
    with executor:
        wrapped = [block for block in model.blocks if "forward" in vars(block)]
        other = copy.deepcopy(model)
        saved = pickle.loads(pickle.dumps(model.blocks))
        loss = variant.compute(model)
    variant.backward(model, loss)
    assert wrapped
    for copied, block in zip([*other.blocks, *saved], [*model.blocks] * 2):
        assert copied.forward.__self__ is copied and copied is not block
    executor.close()
    assert executor.counts["planMisses"] == 0
