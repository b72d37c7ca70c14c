"""The executor on a GPU. Without one these tests are skipped, and say so: nothing else shows that this path works."""

import gc

import pytest

torch = pytest.importorskip("torch")

from memory_networks import GPT, loss_of  # noqa: E402
from memory_tools import make_plan, run_dsc, under  # noqa: E402

from dsc.memory import Offload, profile  # noqa: E402

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="no CUDA device: streams, events and pinned memory are not tested here"
)


def fresh():
    torch.manual_seed(0)
    return GPT(width=512, blocks=8, context=256).cuda(), torch.randint(0, 64, (16, 256), device="cuda")


def train(steps, executor=None, host=False):
    model, inputs = fresh()
    if host:
        executor = Offload(executor, model=model)
    parameters = executor.host_parameters() if host else list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    gradients = []
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    for step in range(steps):
        torch.manual_seed(step)
        with under(executor):
            loss = loss_of(model(inputs))
        loss.backward()
        if host:
            executor.end_step()
        gradients.append([p.grad.cpu().clone() for p in parameters])
        optimizer.step()
        optimizer.zero_grad()
    return gradients, torch.cuda.max_memory_allocated()


def close_to(one, other):
    """Kernels that add atomically differ in the last bits from run to run: races do not."""
    return all(torch.allclose(a, b, rtol=1e-3, atol=1e-6) for a, b in zip(one, other))


@pytest.mark.parametrize("flags", [(), ("--reload", "slots")])
def test_a_hundred_steps_have_the_gradients_of_the_plain_run_and_the_predicted_peak(flags, tmp_path):
    model, inputs = fresh()
    plan, _, plan_path = make_plan(profile(model, inputs, loss=loss_of), tmp_path, "60%", *flags)
    del model
    assert len(plan["moves"]) > 0
    plain, plain_peak = train(100)
    executor = Offload(plan, report=str(tmp_path / "run.json"))
    planned, peak = train(100, executor)
    assert all(map(close_to, plain, planned))
    assert executor.counts["planMisses"] == 0
    assert peak < plain_peak and abs(peak / plan["predicted"]["peakBytes"] - 1) <= 0.10
    executor.close()
    run_dsc("memory", "verify", str(tmp_path / "run.json"), "--plan", plan_path, "--tolerance", "10%")


def test_parameters_and_gradients_on_the_host_train_as_on_the_device(tmp_path):
    model, inputs = fresh()
    plan, _, _ = make_plan(profile(model, inputs, loss=loss_of), tmp_path, "45%", "--move", "params,grads")
    del model
    assert {"param", "param_grad"} <= {move["kind"] for move in plan["moves"]}
    plain, _ = train(20)
    planned, _ = train(20, plan, host=True)
    assert all(map(close_to, plain, planned))


def test_an_executor_that_nobody_closes_gives_its_pinned_memory_back(tmp_path):
    model, inputs = fresh()
    plan, _, _ = make_plan(profile(model, inputs, loss=loss_of), tmp_path, "60%")
    for _ in range(3):
        executor = Offload(plan)
        with executor:
            loss = loss_of(model(inputs))
        loss.backward()
        copies, address = executor.host.copies, executor.host.arena.data_ptr()
        del executor, loss
        gc.collect()
        assert not copies._registered[address].alive
