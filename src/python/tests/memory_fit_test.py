"""`model, step = dsc.memory.fit(model, budget)`: trains as without, within the budget, whatever the batches' shapes."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from memory_networks import GPT, NETWORKS, loss_of  # noqa: E402
from memory_networks import fresh as fresh_network  # noqa: E402
from memory_tools import one_thread  # noqa: E402, F401
from memory_training import same  # noqa: E402
from torch import nn  # noqa: E402

from dsc.memory import AccountingDevice, PlanError, fit, profile  # noqa: E402
from dsc.memory.profiling.first_steps import FirstSteps  # noqa: E402
from dsc.memory.profiling.observer import run_observed  # noqa: E402
from dsc.memory.recording.dropped import DroppedTensors  # noqa: E402
from dsc.memory.recording.timing import TimedStep  # noqa: E402
from dsc.torch_private import storage_key  # noqa: E402


def batches(*sizes):
    torch.manual_seed(7)
    return [torch.randint(0, 64, (size, 32)) for size in sizes]


def fresh():
    torch.manual_seed(0)
    model = GPT(width=64, blocks=6)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(given, budget=None, accumulate=1):
    """Parameters after a step per batch, the losses, and the counted peaks of the steps."""
    model, optimizer = fresh()
    step = None
    if budget is not None:
        found, step = fit(model, budget=budget, smallest="4KiB")
        assert found is model
    losses, peaks = [], []
    for at, tokens in enumerate(given):
        torch.manual_seed(at)
        compute = lambda batch: loss_of(model(batch))  # noqa: E731
        with AccountingDevice() as device:
            device.hold(model, tokens, optimizer)
            device.reset_peak()
            if step is None:
                loss = compute(tokens)
                loss.backward()
                loss = loss.detach()
            else:
                loss = step(compute, tokens)
        losses.append(loss)
        peaks.append(device.peak_bytes)
        if (at + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return list(model.parameters()), losses, peaks, step


def test_training_goes_on_as_without_and_within_the_budget():
    given = batches(*[8] * 5)
    plain, losses, peaks, _ = train(given)
    budget = int(0.6 * max(peaks))
    found, found_losses, found_peaks, step = train(given, budget)
    assert same(plain, found) and same(losses, found_losses)
    assert max(found_peaks) <= 1.05 * budget < max(peaks)  # in the first step, too
    assert all(executor.counts["planMisses"] == 0 for executor in step.executors)
    assert step.plans[0]["recompute"] or step.plans[0]["moves"]
    step.close()


def test_nothing_runs_twice_and_the_second_step_is_planned():
    model, _ = fresh()
    _, step = fit(model, budget="70%", smallest="4KiB")
    calls = []

    def compute(tokens):
        calls.append(len(step.plans))
        return loss_of(model(tokens))

    for tokens in batches(4, 4, 4):
        step(compute, tokens)
        model.zero_grad()
    assert calls == [0, 1, 1]
    assert step.executors[0].counts["plannedSteps"] == 2
    step.close()


@pytest.mark.parametrize("name", list(NETWORKS))
def test_the_first_step_tells_what_steps_without_a_plan_tell(name):
    model, inputs = fresh_network(name)
    torch.manual_seed(3)
    loss_of(model(inputs)).backward()
    plain = [parameter.grad for parameter in model.parameters()]
    full = profile(model, inputs, loss=loss_of)

    model, inputs = fresh_network(name)
    torch.manual_seed(3)
    first = FirstSteps(model)
    assert not first.is_complete
    first.run(lambda: loss_of(model(inputs)), inputs)
    assert first.is_complete
    found = first.write()

    assert same(plain, [parameter.grad for parameter in model.parameters()])
    for same_field in ("signature", "peak", "packLayers", "unpackOrder", "unpackLayers", "blocks"):
        assert found[same_field] == full[same_field], same_field
    # But for the line: a Sequential has no code of its own, and the two steps were called from two places.
    saved = [[{**t, "line": ""} for t in made["tensors"] if t["pack"]] for made in (found, full)]
    assert saved[0] == saved[1]
    assert all(layer["fwdUs"] >= 0 for layer in found["layers"]) and sum(x["bwdFeatUs"] for x in found["layers"]) > 0


def test_a_step_that_is_timed_with_saved_tensors_on_the_host_has_the_same_gradients():
    model, inputs = fresh_network("convnet")
    loss_of(model(inputs)).backward()
    plain = [parameter.grad for parameter in model.parameters()]
    model, inputs = fresh_network("convnet")
    timed = TimedStep(model, torch.device("cpu"), DroppedTensors({storage_key(p) for p in model.parameters()}))
    run_observed(timed, lambda: loss_of(model(inputs)))
    assert same(plain, [parameter.grad for parameter in model.parameters()])
    assert timed.times[("copy", "")] > 0 and any(phase == "bwd" for _, phase in timed.times)


def test_what_is_changed_between_forward_and_backward_is_refused_in_the_first_step_too():
    model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())

    def compute(x):
        out = model(x)
        loss = out.sum()
        with torch.no_grad():
            out.mul_(2)
        return loss

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        FirstSteps(model).run(lambda: compute(torch.ones(2, 4)), ())


def test_every_shape_of_batch_has_a_plan_of_its_own():
    given = batches(8, 8, 5, 8, 5)
    plain, _, peaks, _ = train(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _, _, step = train(given, int(0.6 * max(peaks)))
    assert same(plain, found)
    assert len(step.plans) == 2
    assert sum(executor.counts["planMisses"] for executor in step.executors) == 0
    step.close()


def test_texts_and_numbers_beside_the_tensors_need_no_plan_of_their_own():
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4)]
    model, step = fit(nn.Sequential(*blocks), budget="70%", smallest="4KiB")
    for number in range(4):
        captions = [f"photo {number}", f"{number}.jpg"]
        step(lambda x, *_: model(x).pow(2).mean(), torch.randn(512, 64), captions, {"number": number})
        model.zero_grad()
    assert [executor.counts["plannedSteps"] for executor in step.executors] == [3]
    step.close()


def test_gradients_that_are_accumulated_count():
    given = batches(*[8] * 6)
    plain, _, peaks, _ = train(given, accumulate=2)
    budget = int(0.65 * max(peaks))
    found, _, found_peaks, step = train(given, budget, accumulate=2)
    assert same(plain, found)
    assert len(step.plans) == 2 and max(found_peaks[4:]) <= 1.05 * budget
    step.close()


class Fickle(GPT):
    """Saves more once told to: nothing in its inputs says so."""

    is_changed = False

    def forward(self, tokens):
        out = super().forward(tokens)
        return out.tanh() if self.is_changed else out


def test_a_model_that_changes_is_told_once_and_planned_anew():
    torch.manual_seed(0)
    model = Fickle(width=64, blocks=4)
    _, step = fit(model, budget="60%", smallest="4KiB")
    (tokens,) = batches(8)
    compute = lambda: loss_of(model(tokens))  # noqa: E731

    def one():
        model.zero_grad()
        step(compute)

    one()
    model.is_changed = True
    with pytest.warns(UserWarning, match="not the one that was planned") as told:
        for _ in range(3):
            one()
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one()
        one()
    assert step.executors[0].counts["plannedSteps"] == 1
    step.close()


def test_a_dict_of_inputs_is_a_batch_of_a_model_with_a_loss_of_its_own():
    class Output:
        def __init__(self, loss):
            self.loss = loss

    class WithLoss(GPT):
        def forward(self, input_ids, labels):
            return Output(torch.nn.functional.cross_entropy(super().forward(input_ids).flatten(0, 1), labels.flatten()))

    model = WithLoss(width=64, blocks=2)
    _, step = fit(model, budget="90%", smallest="4KiB")
    (tokens,) = batches(4)
    assert step({"input_ids": tokens, "labels": tokens}).shape == ()
    assert all(parameter.grad is not None for parameter in model.parameters())
    step.close()


def test_what_cannot_be_planned_is_said_in_a_sentence():
    model, _ = fresh()
    with pytest.raises(PlanError, match=r"(?s)no plan of this step fits 1024 bytes .*needs .*try: --budget"):
        fit(model, budget=1024)[1](lambda tokens: loss_of(model(tokens)), *batches(2))
    with pytest.raises(PlanError, match="the model is compiled.*activation_memory_budget"):
        fit(torch.compile(model), budget="1GiB")
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    for make in (lambda: fit(empty, budget="1GiB"), lambda: profile(empty, torch.empty(1, 2, device="meta"))):
        with pytest.raises(PlanError, match="^parameter weight is on the device meta.*to_empty"):
            make()
    inner = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    inner[0].compile()
    with pytest.raises(PlanError, match="^0 is compiled"):
        fit(inner, budget="1GiB")
