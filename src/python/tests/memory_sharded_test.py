"""Models sharded by `fully_shard` under `dsc.memory.fit`: gradients as without, the peak within the budget."""

import pytest

torch = pytest.importorskip("torch")

from exchange_workers import run_ranks  # noqa: E402
from memory_networks import GPT, loss_of  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

from dsc.memory import AccountingDevice, fit  # noqa: E402

STEPS = 4


def _train(rank, budget, is_kept, smallest):
    """Parts of the parameters after the steps, counted peaks, and what the plans were."""
    torch.manual_seed(0)
    model = GPT(width=64, blocks=6)
    mesh = init_device_mesh("cpu", (2,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=not is_kept)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    step = fit(model, budget=budget, smallest=smallest)[1] if budget else None
    peaks = []
    for at in range(STEPS):
        torch.manual_seed(10 * at + rank)
        tokens = torch.randint(0, 64, (16, 32))
        with AccountingDevice() as device:
            device.hold(model, tokens)
            device.reset_peak()
            if step is None:
                loss_of(model(tokens)).backward()
            else:
                step(lambda batch: loss_of(model(batch)), tokens)
        peaks.append(device.peak_bytes)
        optimizer.step()
        optimizer.zero_grad()
    parts = [parameter.to_local().tolist() for parameter in model.parameters()]
    if step is None:
        return parts, peaks, [], []
    misses = [executor.last_miss for executor in step.executors]
    plans = [(len(p["moves"]), len(p["recompute"]), p["predicted"]["peakBytes"]) for p in step.plans]
    return parts, peaks, plans, misses


@pytest.mark.parametrize(
    ("is_kept", "smallest"),
    [(False, "4KiB"), (True, "4KiB"), (False, "1GiB")],
    ids=["resharded after forward", "kept gathered", "nothing may move"],
)
def test_a_sharded_model_trains_within_the_budget_as_without(is_kept, smallest):
    plain = run_ranks(2, _train, None, is_kept, smallest)
    budget = int(0.6 * max(plain[0][1]))
    found = run_ranks(2, _train, budget, is_kept, smallest)
    for (parts, peaks, _, _), (own_parts, own_peaks, plans, misses) in zip(plain, found):
        assert parts == own_parts
        assert misses == [None] and len(plans) == 1
        moves, recomputed, predicted = plans[0]
        assert (recomputed if smallest == "1GiB" else moves) > 0
        assert max(own_peaks) <= 1.05 * budget < max(peaks)
        assert max(own_peaks[1:]) == pytest.approx(predicted, rel=0.05)
