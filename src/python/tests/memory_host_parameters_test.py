"""Plans that move parameters and gradients: bit-equal, within the predicted peak, never wrong when used otherwise."""

import json

import pytest

torch = pytest.importorskip("torch")

from memory_networks import GPT, loss_of  # noqa: E402
from memory_tools import make_plan, one_thread, run_dsc, under  # noqa: E402, F401
from memory_training import gradients, same  # noqa: E402
from torch import nn  # noqa: E402

from dsc.memory import AccountingDevice, Offload, PlanError, profile  # noqa: E402
from dsc.torch_private import saved_tensor_hook  # noqa: E402

MOVE = ("--move", "params,grads")


def wide():
    return nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(128, 128), nn.Tanh())])


def channels_last():
    layers = [nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Conv2d(32, 8, 3)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


class Tied(nn.Module):
    """The embedding's weight is used by its own layer and, as the head's, outside it."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 128)
        self.body = nn.Sequential(*[nn.Linear(128, 128) for _ in range(4)])

    def forward(self, tokens):
        return self.body(self.embedding(tokens)) @ self.embedding.weight.t()


MODELS = {
    "wide": (wide, lambda: torch.randn(16, 128)),
    "gpt": (GPT, lambda: torch.randint(0, 64, (1, 32))),
    "channels_last": (channels_last, lambda: torch.randn(1, 16, 10, 10)),
    "tied": (Tied, lambda: torch.randint(0, 64, (4, 8))),
}


def fresh(name):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    return make(), inputs()


def plan_for(name, folder, budget):
    model, inputs = fresh(name)
    return make_plan(profile(model, inputs, loss=loss_of), folder, budget, *MOVE)


def offloaded(folder, **settings):
    """The wide network, a batch, its executor, and its parameters on the host."""
    plan, _, _ = plan_for("wide", folder, "40%")
    model, inputs = fresh("wide")
    executor = Offload(plan, model=model, **settings)
    return model, inputs, executor, executor.host_parameters()


def train(name, steps, plan=None, report=None):
    model, inputs = fresh(name)
    executor = Offload(plan, report=report, model=model) if plan else None
    parameters = executor.host_parameters() if plan else list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    of_steps = []
    with AccountingDevice() as device:
        device.hold(model, inputs)
        for step in range(steps):
            torch.manual_seed(step)
            if step == 1:
                device.reset_peak()
            with under(executor):
                loss = loss_of(model(inputs))
            loss.backward()
            del loss
            if executor is not None:
                executor.end_step()
            with device.uncounted():  # the optimizer's work is the host's
                of_steps.append([p.grad.clone() for p in parameters])
                optimizer.step()
                optimizer.zero_grad()
    if executor is not None:
        executor.counts["peakBytes"] = device.peak_bytes
        executor.close()
    return of_steps, [p.detach().clone() for p in model.parameters()], device.peak_bytes, executor


@pytest.mark.parametrize(
    "name,budget", [("wide", "60%"), ("wide", "40%"), ("gpt", "40%"), ("channels_last", "75%"), ("tied", "60%")]
)
def test_twenty_steps_with_parameters_on_the_host_are_bit_equal_and_peak_as_predicted(name, budget, tmp_path):
    plan, _, plan_path = plan_for(name, tmp_path, budget)
    kinds = {move["kind"] for move in plan["moves"]}
    assert "param" in kinds and (name in ("channels_last", "tied") or "param_grad" in kinds)
    plain, plain_end, plain_peak, _ = train(name, 20)
    planned, planned_end, peak, executor = train(name, 20, plan, str(tmp_path / "run.json"))
    for step, (one, other) in enumerate(zip(plain, planned)):
        assert same(one, other), f"step {step}"
    assert same(plain_end, planned_end)
    assert abs(peak / plan["predicted"]["peakBytes"] - 1) <= 0.05 and peak < plain_peak
    assert executor.counts["plannedSteps"] == 20 and executor.counts["planMisses"] == 0
    run_dsc("memory", "verify", str(tmp_path / "run.json"), "--plan", plan_path)


def test_a_parameter_that_is_used_outside_its_layer_stays(tmp_path):
    model, inputs = fresh("tied")
    made = profile(model, inputs, loss=loss_of)
    named = {tensor["name"] for tensor in made["tensors"] if tensor["kind"] == "param"}
    assert "body.0.weight" in named and "embedding.weight" not in named


def test_another_batch_size_is_a_miss_with_the_right_gradients(tmp_path):
    model, _, executor, host = offloaded(tmp_path)
    inputs = torch.randn(5, 128)
    for _ in range(2):
        for parameter in host:
            parameter.grad = None
        gradients(model, inputs, executor)
        executor.end_step()
    plain, _ = fresh("wide")
    assert executor.counts["planMisses"] == 2
    assert same([p.grad for p in host], gradients(plain, inputs))


def test_gradients_add_up_over_backwards_and_steps_until_they_are_zeroed(tmp_path):
    model, inputs, executor, host = offloaded(tmp_path)
    plain, _ = fresh("wide")
    for scale in (1, 2):
        gradients(model, scale * inputs, executor)
        executor.end_step()
        expected = gradients(plain, scale * inputs)
    assert same([p.grad for p in host], expected)


def test_a_parameter_that_is_away_reads_as_nan_until_its_layer_or_bring_back_needs_it(tmp_path):
    model, inputs, executor, host = offloaded(tmp_path)
    expected = model(inputs)
    gradients(model, inputs, executor)
    executor.end_step()
    away = [p for p in model.parameters() if torch.isnan(p).any()]
    assert len(away) > 0
    with torch.no_grad():
        assert torch.equal(model(inputs), expected), "a forward outside of a step needs no plan"
        before = host[0].clone()
        host[0].add_(1)
        assert not torch.equal(model(inputs), expected), "the host's update is not seen"
        host[0].copy_(before)
    executor.bring_back()
    assert not any(torch.isnan(p).any() for p in model.parameters())
    executor.close()
    assert torch.equal(model(inputs), expected)


def test_misuse_is_named_before_it_trains_on_wrong_values(tmp_path):
    plan, _, _ = plan_for("wide", tmp_path, "40%")
    model, inputs = fresh("wide")
    with pytest.raises(PlanError, match="model=model"):
        Offload(plan)
    with pytest.raises(PlanError, match=r"needs \d+ bytes of host memory, 1000 are permitted"):
        Offload(plan, model=model, host_limit_bytes=1000).host_parameters()
    executor = Offload(plan, model=model)
    with pytest.raises(PlanError, match="host_parameters"), executor:
        pytest.fail("the step began")
    executor.host_parameters()
    gradients(model, inputs, executor)
    with pytest.raises(PlanError, match="end_step"), executor:
        pytest.fail("the step began")
    executor.end_step()
    with torch.no_grad():
        model[0].bias.add_(1)
    with pytest.raises(RuntimeError, match="0.bias was changed on the device"), executor:
        pytest.fail("the step began")
    assert saved_tensor_hook() is None  # later graphs of this process are not this step's


def test_a_graph_whose_parameters_were_updated_meanwhile_raises(tmp_path):
    model, inputs, executor, host = offloaded(tmp_path)
    with executor:
        loss = loss_of(model(inputs))
    with torch.no_grad():
        for parameter in host:
            parameter.add_(1)
    with pytest.raises(RuntimeError, match="updated between its forward and its backward"):
        loss.backward()


def test_explain_says_what_moves_and_of_which_parameter(tmp_path):
    plan, profile_path, plan_path = plan_for("wide", tmp_path, "40%")
    shown = run_dsc("memory", "explain", plan_path, "--profile", profile_path, "--json")
    rows = {row["storage"]: row for row in json.loads(shown.stdout)["tensors"]}
    for move in plan["moves"]:
        assert rows[move["storage"]]["decision"] == "moves"
        assert move["kind"] == "feature" or rows[move["storage"]]["name"] == move["name"]


def test_a_state_dict_taken_while_parameters_are_away_has_their_values(tmp_path):
    model, inputs, executor, _ = offloaded(tmp_path)
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    for is_of_a_part in (False, True):
        gradients(model, inputs, executor)
        executor.end_step()
        away = [name for name, parameter in model.named_parameters() if parameter.isnan().any()]
        assert away, "some are away, else nothing is proved"
        part = away[0].rpartition(".")[0] if is_of_a_part else ""
        state = model.get_submodule(part).state_dict(prefix=f"{part}." if part else "")
        assert away[0] in state
        assert all(torch.equal(expected[name], value) for name, value in state.items())
    executor.close()


def test_one_plan_for_two_models_has_an_executor_for_each(tmp_path):
    import dsc

    _, _, path = plan_for("wide", tmp_path, "40%")
    (one, inputs), (other, _) = fresh("wide"), fresh("wide")
    for model in (one, other):
        executor = dsc.offload(path, model=model)
        before = [parameter.clone() for parameter in model.parameters()]
        optimizer = torch.optim.SGD(executor.host_parameters(), lr=0.1)
        with dsc.offload(path, model=model) as same_one:
            loss = loss_of(model(inputs))
        assert same_one is executor
        loss.backward()
        executor.end_step()
        optimizer.step()
        executor.bring_back()
        assert not any(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    with pytest.raises(PlanError, match="several models"):
        dsc.offload(path)
    for model in (one, other):
        dsc.offload(path, model=model).close()
