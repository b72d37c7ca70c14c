"""Plans that recompute blocks: gradients, buffers and random numbers as without, the counted peak as planned."""

import json

import pytest

torch = pytest.importorskip("torch")

from memory_networks import GPT, loss_of  # noqa: E402
from memory_tools import link_gbs, make_plan, one_thread, run_dsc, set_link, slow_gbs  # noqa: E402, F401
from memory_training import same, train_model  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from dsc.memory import PlanError, offload, profile  # noqa: E402
from dsc.memory.profiling.profiler import profile_step  # noqa: E402

FAST_GBS = 20.0


class Stage(nn.Module):
    """What makes recomputation hard: running statistics, dropout, a power iteration, and two calls of one block."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.drop = nn.Dropout(0.2)
        self.mix = nn.utils.parametrizations.spectral_norm(nn.Conv2d(width, width, 1))

    def forward(self, x, *, scale):
        return x + self.drop(torch.relu(self.norm(self.conv(x)))) * scale + self.mix(x)


class Stages(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.stages = nn.ModuleList([Stage(16) for _ in range(4)])
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        for stage in [*self.stages, self.stages[0]]:
            x = stage(x, scale=torch.tensor(0.5))
        return self.head(x.mean((2, 3)))


NETWORKS = {
    "gpt": (lambda: GPT(width=64, blocks=6), lambda: torch.randint(0, 64, (8, 32))),
    "stages": (Stages, lambda: torch.randn(8, 3, 32, 32)),
}


def fresh(name):
    torch.manual_seed(0)
    make, batch = NETWORKS[name]
    return make(), batch()


def train(name, plan=None, autocast=False):
    model, inputs = fresh(name)
    executor = offload(plan, model=model) if plan else None

    def loss_now():
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return loss_of(model(inputs))

    gradients, parameters, peak = train_model(model, inputs, loss_now, 3, executor=executor)
    return gradients, [*parameters, *model.buffers()], peak, executor, torch.rand(1)


def plan_of(name, folder, budget, gbs, *flags, autocast=False):
    """`gbs`: of the link, or a function of the profile that says."""
    model, inputs = fresh(name)

    def step():  # what autocast keeps of the weights ends with it, before the backward, as in `train`
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return loss_of(model(inputs))

    made = profile_step(model, step, held=[inputs])
    set_link(made, gbs(made) if callable(gbs) else gbs)
    return make_plan(made, folder, budget, "--recompute", *flags)


@pytest.mark.parametrize("autocast", [False, True], ids=["", "autocast"])
@pytest.mark.parametrize("budget", ["75%", "60%"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_step_with_recomputed_blocks_is_the_plain_one(name, budget, autocast, tmp_path):
    plan, _, path = plan_of(name, tmp_path, budget, slow_gbs, autocast=autocast)
    assert plan["recompute"]
    before, state, _, _, random = train(name, autocast=autocast)
    found, found_state, peak, executor, found_random = train(name, path, autocast)
    assert executor.counts["plannedSteps"] == 3 and executor.counts["planMisses"] == 0
    assert all(same(one, other) for one, other in zip(before, found))
    assert same(state, found_state)  # running statistics and power iterations, too
    assert torch.equal(random, found_random)
    assert peak == pytest.approx(plan["predicted"]["peakBytes"], rel=0.05)
    assert "forward" not in vars(executor.model.get_submodule(plan["recompute"][0]["name"]))
    executor.close()


def test_what_a_recomputed_block_is_given_moves_meanwhile(tmp_path):
    plan, _, path = plan_of("gpt", tmp_path, "43%", lambda made: link_gbs(made, 6))
    model, inputs = fresh("gpt")
    given = inputs.shape[0] * inputs.shape[1] * 64 * 4
    inputs_moved = [move for move in plan["moves"] if move["bytes"] == given]
    assert len(plan["recompute"]) >= 2 and inputs_moved
    before, _, _, _, _ = train("gpt")
    found, _, peak, executor, _ = train("gpt", path)
    assert executor.counts["plannedSteps"] == 3 and executor.counts["movedBytes"] > 0
    assert all(same(one, other) for one, other in zip(before, found))
    assert peak <= plan["budgetBytes"]
    executor.close()


def test_a_step_that_misses_its_plan_recomputes_all_the_same(tmp_path):
    plan, _, path = plan_of("gpt", tmp_path, "43%", lambda made: link_gbs(made, 6))
    assert plan["recompute"] and plan["moves"]
    model, inputs = fresh("gpt")
    half = inputs[:4]
    torch.manual_seed(1)
    loss_of(model(half)).backward()
    before = [p.grad for p in model.parameters()]
    model.zero_grad()
    executor = offload(path, model=model)
    torch.manual_seed(1)
    with pytest.warns(UserWarning, match="not the one that was planned"), executor:
        loss = loss_of(model(half))
    loss.backward()
    assert same(before, [p.grad for p in model.parameters()])
    assert executor.counts["planMisses"] == 1
    executor.close()


class Checkpointed(GPT):
    """A model that recomputes by itself, in either way."""

    is_reentrant = False

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.is_reentrant)
        return self.head(self.ln(x))


@pytest.mark.parametrize("is_reentrant", [False, True], ids=["without reentrance", "reentrant"])
def test_what_the_users_own_checkpoints_are_given_moves(is_reentrant, tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpointed, "is_reentrant", is_reentrant)
    own = lambda: Checkpointed(width=32, blocks=8), lambda: torch.randint(0, 64, (64, 32))  # noqa: E731
    monkeypatch.setitem(NETWORKS, "own", own)
    plan, _, path = plan_of("own", tmp_path, "90%", FAST_GBS)
    assert plan["moves"] and not plan["recompute"]
    before, _, plain_peak, _, _ = train("own")
    found, _, peak, executor, _ = train("own", path)
    assert executor.counts["plannedSteps"] == 3 and executor.counts["movedBytes"] > 0
    assert all(same(one, other) for one, other in zip(before, found))
    assert plain_peak == pytest.approx(plan["predicted"]["unplannedPeakBytes"], rel=0.05)
    assert peak == pytest.approx(plan["predicted"]["peakBytes"], rel=0.05)
    executor.close()


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x, cache):
        cache.append(1)
        return self.inner(x)


def test_what_cannot_run_again_is_recorded_with_the_reason():
    class Cache(list):
        pass

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = InPlace(), nn.Sequential(nn.ReLU(inplace=True), nn.Linear(64, 64), nn.Tanh())

        def forward(self, x):
            return self.two(self.one(x, Cache()) * 1)

    blocks = {one["name"]: one.get("obstacle") for one in profile(Net(), torch.randn(4, 64), loss=loss_of)["blocks"]}
    assert blocks == {
        "one": "is given a Cache, which it may change",
        "one.inner": None,
        "two": "its input is changed in place",
    }


def test_a_plan_with_recomputed_blocks_needs_the_model_it_was_made_for(tmp_path):
    _, _, path = plan_of("gpt", tmp_path, "50%", slow_gbs)
    with pytest.raises(PlanError, match=r"recomputes blocks\.\d: offload\(plan, model=model\)"):
        offload(path)
    with pytest.raises(PlanError, match="which Linear does not have"):
        offload(path, model=nn.Linear(2, 2))


def test_the_plan_explains_simulates_and_draws(tmp_path):
    plan, profile_path, path = plan_of("gpt", tmp_path, "50%", slow_gbs)
    picture = tmp_path / "step.svg"
    run_dsc("memory", "explain", path, "--profile", profile_path, "--svg", str(picture))
    assert picture.read_text().startswith("<svg")
    run = json.loads(run_dsc("memory", "simulate", path, "--profile", profile_path, "--json").stdout)
    assert run["violations"] == []
    assert run["peakBytes"] == plan["predicted"]["peakBytes"]
