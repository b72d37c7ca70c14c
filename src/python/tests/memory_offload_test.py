"""The executor: gradients bit-equal, counted peak as predicted, nothing leaks, mismatches are harmless."""

import gc
import warnings

import pytest

torch = pytest.importorskip("torch")

from memory_networks import GPT, fresh, loss_of  # noqa: E402
from memory_tools import ROOT, make_plan, one_thread, run_dsc  # noqa: E402, F401
from memory_training import gradients, plan_of, same, train  # noqa: E402

from dsc.memory import AccountingDevice, Offload, PlanError, profile  # noqa: E402
from dsc.memory.carrying.copies import CpuCopies  # noqa: E402


@pytest.mark.parametrize("name", ["gpt", "convnet"])
@pytest.mark.parametrize("budget,flags", [("70%", ()), ("50%", ()), ("50%", ("--reload", "slots"))])
def test_twenty_steps_are_bit_equal_and_peak_as_predicted(name, budget, flags, tmp_path):
    model, inputs = fresh(name)
    plan, _, plan_path = make_plan(profile(model, inputs, loss=loss_of), tmp_path, budget, *flags)
    assert len(plan["moves"]) > 0
    plain, plain_end, plain_peak = train(name, 20)
    executor = Offload(plan, report=str(tmp_path / "run.json"))
    planned, planned_end, peak = train(name, 20, executor)
    for step, (a, b) in enumerate(zip(plain, planned)):
        assert same(a, b), f"step {step}"
    assert same(plain_end, planned_end)
    assert plain_peak == plan["predicted"]["unplannedPeakBytes"]
    assert abs(peak / plan["predicted"]["peakBytes"] - 1) <= 0.05
    executor.end_step()
    assert executor.counts["plannedSteps"] == 20 and executor.counts["planMisses"] == 0
    assert executor.counts["leftReferences"] == 0
    executor.counts["peakBytes"] = peak
    executor.close()
    verified = run_dsc("memory", "verify", str(tmp_path / "run.json"), "--plan", plan_path)
    assert "DIFFERS" not in verified.stdout


def test_slow_copies_cost_time_not_memory_nor_truth(tmp_path):
    import time

    *_, plan = plan_of("gpt", tmp_path)
    executor = Offload(plan, copies=CpuCopies(delay=lambda direction: time.sleep(0.003)))
    planned, _, peak = train("gpt", 3, executor)
    plain, _, _ = train("gpt", 3)
    assert all(same(a, b) for a, b in zip(plain, planned))
    assert peak <= 1.05 * plan["predicted"]["peakBytes"]
    assert executor.counts["stallUs"] > 0
    assert len(executor.report()["lateness"]) > 0


def test_the_first_miss_is_told_with_what_to_do_and_no_other(tmp_path):
    model, inputs = fresh("gpt")
    plan, _, _ = make_plan(profile(model, inputs), tmp_path, "50%")  # with another loss than the one that trains
    executor = Offload(plan)
    with pytest.warns(UserWarning, match="not the one that was planned: .*profile the step that runs, loss included"):
        gradients(model, inputs, executor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients(model, inputs, executor)
    assert executor.counts["planMisses"] == 2


def test_another_batch_size_is_a_miss_with_the_right_gradients(tmp_path):
    *_, plan = plan_of("gpt", tmp_path)
    executor = Offload(plan)
    planned, _, _ = train("gpt", 4, executor, batch=5)
    plain, _, _ = train("gpt", 4, batch=5)
    assert all(same(a, b) for a, b in zip(plain, planned))
    assert executor.counts["planMisses"] == 4 and executor.needs_profile
    assert "planned" in executor.last_miss


def test_a_branch_that_appears_mid_way_is_a_miss_with_the_right_gradients(tmp_path):
    model, inputs, plan = plan_of("gpt", tmp_path)
    executor = Offload(plan)

    def branched():
        torch.manual_seed(0)
        model = GPT()
        torch.manual_seed(1)
        model.blocks[3].act = torch.nn.Sequential(torch.nn.GELU(), torch.nn.Tanh())
        return model

    assert same(gradients(branched(), inputs), gradients(branched(), inputs, executor))
    assert executor.counts["movedBytes"] > 0, "the miss must come after copies began, else this proves nothing"
    assert executor.counts["planMisses"] == 1


def test_an_exception_in_forward_leaks_nothing(tmp_path):
    model, inputs, plan = plan_of("gpt", tmp_path)
    executor = Offload(plan)

    def explode(module, args, output):
        raise ValueError("no")

    with AccountingDevice() as device:
        device.hold(model, inputs)
        before = device.live_bytes
        hook = model.head.register_forward_hook(explode)
        for _ in range(3):
            with pytest.raises(ValueError), executor:
                model(inputs)
            gc.collect()
        hook.remove()
        executor.end_step()
        assert device.live_bytes == before
        gradients(model, inputs, executor)
    assert executor.last_miss is None and executor.counts["plannedSteps"] == 1


def test_a_graph_that_is_still_alive_is_never_overwritten(tmp_path):
    model, inputs, plan = plan_of("convnet", tmp_path)
    executor = Offload(plan)
    with executor:
        first = loss_of(model(inputs))
    with executor:
        second = loss_of(model(inputs + 1))
    assert executor.last_miss == "the graph of an earlier forward is still alive"
    (first + second).backward()
    planned = [p.grad.clone() for p in model.parameters()]
    model, inputs = fresh("convnet")
    (loss_of(model(inputs)) + loss_of(model(inputs + 1))).backward()
    assert same(planned, [p.grad for p in model.parameters()])


def test_backward_twice_with_retain_graph_gives_the_same_gradients(tmp_path):
    model, inputs, plan = plan_of("convnet", tmp_path)
    with Offload(plan) as executor:
        loss = loss_of(model(inputs))
    loss.backward(retain_graph=True)
    once = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss.backward()
    assert same(once, [p.grad for p in model.parameters()])
    assert executor.counts["planMisses"] == 0


def test_checkpointed_blocks_stay_out_of_the_plan_and_the_rest_moves(tmp_path):
    from torch.utils.checkpoint import checkpoint

    def make():
        torch.manual_seed(0)
        model = GPT()
        inner = model.blocks[1].forward
        model.blocks[1].forward = lambda x: checkpoint(inner, x, use_reentrant=False)
        return model, torch.randint(0, 64, (8, 32))

    def train_step(executor=None):
        model, inputs = make()
        torch.manual_seed(5)
        return gradients(model, inputs, executor)

    model, inputs = make()
    plan, _, _ = make_plan(profile(model, inputs, loss=loss_of), tmp_path, "70%")
    executor = Offload(plan)
    assert same(train_step(), train_step(executor))
    executor.end_step()
    assert executor.counts["movedBytes"] > 0
    assert executor.counts["planMisses"] == 0 and executor.counts["leftReferences"] == 0


def test_a_plan_that_asks_for_what_the_executor_cannot_do_is_refused(tmp_path):
    model, _, plan = plan_of("convnet", tmp_path, "60%")
    plan["moves"][0] = {**plan["moves"][0], "kind": "opt_state"}
    with pytest.raises(PlanError, match="without --move optimizer"):
        Offload(plan, model=model)


def test_a_step_without_backward_leaves_nothing_behind(tmp_path):
    model, inputs, plan = plan_of("convnet", tmp_path)
    executor = Offload(plan)
    with AccountingDevice() as device:
        device.hold(model, inputs)
        before = device.live_bytes
        for _ in range(3):
            with executor:
                loss = loss_of(model(inputs))
            del loss
        executor.end_step()
        assert device.live_bytes == before
    assert executor.counts["plannedSteps"] == 3


def test_a_host_that_is_too_small_is_refused_before_step_one_with_both_numbers(tmp_path):
    *_, plan = plan_of("gpt", tmp_path)
    needed = plan["arenas"]["host"]["bytes"]
    executor = Offload(plan, host_limit_bytes=needed - 1)
    with pytest.raises(PlanError, match=f"{needed} bytes of host memory, {needed - 1} are permitted"):
        executor.__enter__()


def test_a_plan_that_declines_moves_nothing(tmp_path):
    *_, plan = plan_of("convnet", tmp_path, "100%")
    assert plan["moves"] == []
    executor = Offload(plan)
    planned, _, _ = train("convnet", 2, executor)
    assert executor.counts["movedBytes"] == 0 and executor.counts["planMisses"] == 0
    assert all(same(a, b) for a, b in zip(train("convnet", 2)[0], planned))


def test_one_executor_per_plan_file_and_a_new_one_when_the_file_changes(tmp_path):
    import dsc

    model, inputs = fresh("convnet")
    made = profile(model, inputs, loss=loss_of)
    _, _, path = make_plan(made, tmp_path, "50%")
    with dsc.offload(path) as first:
        loss_of(model(inputs)).backward()
    assert dsc.memory.offload(path) is first
    make_plan(made, tmp_path, "70%")
    assert dsc.offload(path) is not first
