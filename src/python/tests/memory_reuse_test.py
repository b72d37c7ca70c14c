"""`--reuse`: feature gradients in dead maps, bit-equal to those that autograd allocates, at the planned peak."""

import json

import pytest

torch = pytest.importorskip("torch")

from memory_networks import NETWORKS, Mixture, fresh, loss_of  # noqa: E402
from memory_tools import make_plan, one_thread, run_dsc, under  # noqa: E402, F401
from memory_training import gradients, plan_of, same, train  # noqa: E402
from torch import nn  # noqa: E402

from dsc.memory import Offload, profile  # noqa: E402


@pytest.mark.parametrize("name", sorted(NETWORKS))
@pytest.mark.parametrize("budget", ["100%", "60%"])
def test_gradients_are_bit_equal_and_the_peak_is_as_planned(name, budget, tmp_path):
    model, inputs = fresh(name)
    plan, _, plan_path = make_plan(profile(model, inputs, loss=loss_of), tmp_path, budget, "--reuse")
    assert len(plan["reuse"]) > 3
    assert (len(plan["moves"]) > 0) == (budget == "60%")
    executor = Offload(plan, report=str(tmp_path / "run.json"))
    plain, _, plain_peak = train(name, 5)
    found, _, peak = train(name, 5, executor)
    assert all(same(a, b) for a, b in zip(plain, found))
    assert plain_peak == plan["predicted"]["unplannedPeakBytes"]
    assert peak == pytest.approx(plan["predicted"]["peakBytes"], rel=0.05)
    assert executor.counts["plannedSteps"] == 5
    assert executor.counts["reusedMaps"] == 5 * len(plan["reuse"])
    executor.counts["peakBytes"] = peak
    executor.close()
    assert "DIFFERS" not in run_dsc("memory", "verify", str(tmp_path / "run.json"), "--plan", plan_path).stdout


def test_a_map_that_somebody_holds_is_left_alone_and_the_gradients_are_right(tmp_path):
    model, inputs, plan = plan_of("gpt", tmp_path, "100%", "--reuse")
    executor, kept = Offload(plan), []
    model.blocks[1].act.register_forward_hook(lambda module, inputs, output: kept.append(output))
    torch.manual_seed(1)
    with executor:
        loss = loss_of(model(inputs))
    before = kept[0].detach().clone()
    loss.backward()
    assert torch.equal(kept[0], before)
    assert executor.counts["reusedMaps"] == len(plan["reuse"]) - 1
    found = [p.grad for p in model.parameters()]
    model.zero_grad()
    torch.manual_seed(1)
    assert same(found, gradients(model, inputs))


def test_a_second_backward_through_overwritten_maps_is_refused_by_name(tmp_path):
    model, inputs, plan = plan_of("convnet", tmp_path, "100%", "--reuse")
    with Offload(plan):
        loss = loss_of(model(inputs))
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="retain_graph is not possible under this plan; plan without --reuse"):
        loss.backward()


def test_a_step_that_misses_its_plan_writes_into_no_map(tmp_path):
    model, inputs, plan = plan_of("gpt", tmp_path, "100%", "--reuse")
    executor = Offload(plan)
    gradients(model, inputs[:4], executor)
    assert executor.counts["planMisses"] == 1 and executor.counts["reusedMaps"] == 0


def test_second_derivatives_are_those_without_a_plan(tmp_path):
    def penalized(model, inputs):
        inputs = inputs.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss_of(model(inputs)), inputs, create_graph=True)
        return loss_of(model(inputs)) + slope.square().sum()

    class Penalized(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mixture()

        def forward(self, inputs):
            return penalized(self.inner, inputs)

    torch.manual_seed(0)
    model, inputs = Penalized(), torch.randn(4, 3, 8, 8)
    made = profile(model, inputs, loss=lambda output: output)
    plan, _, _ = make_plan(made, tmp_path, "100%", "--reuse")
    executor = Offload(plan)
    model(inputs).backward()
    plain = [p.grad for p in model.parameters()]
    model.zero_grad()
    with executor:
        loss = model(inputs)
    loss.backward()
    assert same(plain, [p.grad for p in model.parameters()])


def test_a_wide_network_needs_less_with_reuse_than_any_plan_can_reach_without(tmp_path):
    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 32))))
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile(model, torch.randn(2048, 32), loss=loss_of)))
    least = [
        json.loads(run_dsc(*words, check=False).stderr)["error"]["message"].rsplit("needs ", 1)[1].split()[0]
        for flags in ([], ["--reuse"])
        for words in [["memory", "plan", str(path), "--budget", "1", "--out", "-", "--smallest", "1", "--json", *flags]]
    ]
    assert int(least[1]) <= 0.75 * int(least[0]), least
