"""Parameters on the host come back layer by layer, ahead of the layer that needs them: in forward and in backward."""

import pytest

torch = pytest.importorskip("torch")

from memory_tools import make_plan, one_thread  # noqa: E402, F401
from torch import nn  # noqa: E402

from dsc.memory import Offload, profile  # noqa: E402
from dsc.memory.carrying.host_parameters import HostParameters  # noqa: E402

LAYERS = 10
WIDTH = 256


def network():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]), torch.randn(8, WIDTH)


def loss_of(output):
    return output.square().mean()


def plan_with_slow_link(folder, budget):
    """A plan for a link over which a weight takes as long as a layer to run, so that it must set out early."""
    model, inputs = network()
    profiled = profile(model, inputs, loss=loss_of)
    for layer in profiled["layers"]:
        layer.update(fwdUs=100.0, bwdParamUs=100.0, bwdFeatUs=100.0)
    profiled["device"].update(h2dGBs=WIDTH * WIDTH * 4 / 1e3 / 100.0, d2hGBs=100.0, copyLatencyUs=0.0)
    return make_plan(profiled, folder, budget, "--move", "params,grads")[0]


def follow_step(monkeypatch, plan):
    """What happens to parameters in the second step of a plan: ("in", name), ("use", name), ("backward",)."""
    happened = []
    start_in, need = HostParameters._start_in, HostParameters._need

    def log_in(self, home):
        if home.copy_in is None and not home.is_current:
            happened.append(("in", home.name))
        start_in(self, home)

    def log_need(self, parameters):
        parameters = list(parameters)
        happened.extend(("use", self._homes[each].name) for each in parameters if each in self._homes)
        need(self, parameters)

    monkeypatch.setattr(HostParameters, "_start_in", log_in)
    monkeypatch.setattr(HostParameters, "_need", log_need)
    model, inputs = network()
    executor = Offload(plan, model=model)
    executor.host_parameters()
    for _ in range(2):
        happened.clear()
        with executor:
            loss = loss_of(model(inputs))
        happened.append(("backward", ""))
        loss.backward()
        step = list(happened)
        executor.end_step()
    counts = dict(executor.counts)
    executor.close()
    return step, counts


def test_parameters_come_back_one_layer_ahead_in_forward_and_in_backward(tmp_path, monkeypatch):
    plan = plan_with_slow_link(tmp_path, "40%")
    assert plan["predicted"]["stallMs"] == 0
    step, counts = follow_step(monkeypatch, plan)
    assert (counts["plannedSteps"], counts["planMisses"]) == (2, 0)
    backward = step.index(("backward", ""))
    # The last weights are away while the first layers run, the first ones while the last layers run.
    for layer, before in [(7, 6), (8, 7), (9, 8)]:
        assert comes_before(step[:backward], f"{layer}.weight", f"{before}.weight")
    for layer, before in [(4, 5), (3, 4), (2, 3), (1, 2)]:
        assert comes_before(step[backward:], f"{layer}.weight", f"{before}.weight")


def comes_before(happened, name, other):
    """Whether ``name`` sets out, after the layers before have begun, before ``other`` is used for the last time."""
    last_use = max(at for at, each in enumerate(happened) if each == ("use", other))
    return ("in", name) in happened and happened.index(("in", name)) < last_use
