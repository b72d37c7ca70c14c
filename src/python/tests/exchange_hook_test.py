from random import Random, randrange
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from exchange_hook_runs import CAP_MB, SHAPES, draw, mean_of, run_products, wrap
from exchange_models import Products
from exchange_workers import run_ranks
from torch.nn.parallel import DistributedDataParallel

from dsc.exchange import ScaledHalf, scaled_half_hook
from dsc.exchange.device_carrier import DeviceCarrier
from dsc.exchange.errors import ExchangeMismatch


def _any_size(rank, size):
    ddp, state = wrap(Products(SHAPES))
    for step in range(4):
        found = run_products(ddp, rank, step, [size] * len(SHAPES))
        expected = mean_of(2, step, [size] * len(SHAPES))
        # The norm of values of this size is no float.
        errors = [((f / size - e / size).norm() / (e / size).norm()).item() for f, e in zip(found, expected)]
        assert max(errors) < 5e-4, f"step {step}: {errors}"
    return state.redone


def test_gradients_of_any_size_that_floats_have_are_sent_once():
    for size in (1e-30, 1e22, 1e30):
        assert run_ranks(2, _any_size, size) == [0, 0], size


def _accuracy(rank, ranks):
    stds = [1e-9, 1e-7, 1e-5, 1e-4, 1e-3]
    ddp, state = wrap(Products(SHAPES))
    errors = []
    for step in range(6):
        found = run_products(ddp, rank, step, stds)
        expected = mean_of(ranks, step, stds)
        errors.append(max(((f - e).norm() / e.norm()).item() for f, e in zip(found, expected)))
        # Ranks' values may cancel to within their rounding; what is larger than that must not vanish.
        zeroed = [int(((f == 0) & (e.abs() > 4e-3 * std)).sum()) for f, e, std in zip(found, expected, stds)]
        assert not any(zeroed), f"step {step}: zeroed {zeroed}, {state._groups}"
    wires = {group: scale.exponents for group, scale in state._groups.items()}
    return errors, wires


# Halves are summed in fp32: what each rank rounds averages out, whatever their number. gloo's own sums reach 5.6e-4
# with 8.
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_layers_of_any_size_keep_their_relative_precision_and_nothing_is_zeroed(ranks):
    results = run_ranks(ranks, _accuracy, ranks)
    for errors, wires in results:
        assert max(errors[:2]) < 1e-6  # fp32
        assert 1e-5 < max(errors[2:]) <= 3.5e-4  # half precision, and really so
        assert wires == results[0][1] and len(wires) >= 2


def _overflow(rank):
    stds = [1e-3] * len(SHAPES)
    ddp, state = wrap(Products(SHAPES))
    for step in range(3):
        run_products(ddp, rank, step, stds)

    def spike(given):
        if rank == 1:
            given[0][5, 5] = 1e6

    before = dict(state._groups)
    found = run_products(ddp, rank, 3, stds, spike)
    expected = [draw(0, 3, stds), draw(1, 3, stds)]
    expected[1][0][5, 5] = 1e6
    exact = torch.equal(found[0], (expected[0][0] * 0.5 + expected[1][0] * 0.5))
    looking = sorted(key for key in before if state._groups[key].is_looking)
    others = max(
        ((f - (a + b) / 2).norm() / ((a + b) / 2).norm()).item()
        for f, a, b in list(zip(found, expected[0], expected[1]))[1:]
    )
    run_products(ddp, rank, 4, stds)
    are_as_before = [state._groups[key].exponents == before[key].exponents for key in before]
    return exact, state.redone, looking, others, are_as_before


def test_an_overflow_repeats_that_bucket_in_fp32_and_the_step_is_not_lost():
    for exact, redone, looking, others, are_as_before in run_ranks(2, _overflow):
        assert exact and redone == 1
        assert others <= 5e-4
        assert [0 in key for key in looking] == [True]  # that bucket alone is in fp32 once more
        assert all(are_as_before)  # one spike says nothing of the values after it


def _overflow_among(rank, ranks, is_device, has_group):
    """Several buckets overflow at once, of different ranks; each is repeated by all in the same order."""
    stds = [1e-3] * len(SHAPES)
    group = dist.new_group(list(range(ranks))) if has_group else None
    ddp, state = wrap(Products(SHAPES), process_group=group)
    if is_device:
        state._carrier = DeviceCarrier(None)  # nothing in it needs a GPU
    for step in range(3):
        run_products(ddp, rank, step, stds)

    def spike(given):
        given[2 * rank % len(SHAPES)].view(-1)[7] = 1e6

    found = run_products(ddp, rank, 3, stds, spike)
    drawn = [draw(other, 3, stds) for other in range(ranks)]
    for other, given in enumerate(drawn):
        given[2 * other % len(SHAPES)].view(-1)[7] = 1e6
    expected = [sum(values) / ranks for values in zip(*drawn)]
    errors = [((f - e).norm() / e.norm()).item() for f, e in zip(found, expected)]
    return errors, state.redone, state.state_dict(), [value.double().sum().item() for value in found]


@pytest.mark.parametrize("ranks, is_device, has_group", [(3, False, False), (5, False, True), (3, True, False)])
def test_several_overflows_in_one_step_are_all_repeated(ranks, is_device, has_group):
    results = run_ranks(ranks, _overflow_among, ranks, is_device, has_group)
    for errors, redone, state, sums in results:
        assert max(errors) < 1e-6 and redone == 2
        assert state == results[0][2] and sums == results[0][3]


def test_a_graph_is_refused_that_would_exchange_without_looking(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group: 2)
    carrier = DeviceCarrier(None)
    carrier._pending = [(None, SimpleNamespace(is_cuda=True), None, None)]
    with pytest.raises(ExchangeMismatch, match="a CUDA graph is being captured"):
        carrier.flush()


SERIES = [1.0] * 3 + [1e20] * 5 + [1.0] * 4 + [1e-10] * 4 + [1e-25] * 4 + [1e15, 1.0, 1.0, 1.0]


def _series(rank, ranks, is_device):
    """Relative errors by step, of the worst parameter, as sizes explode, fall and spike."""
    ddp, state = wrap(Products(SHAPES))
    if is_device:
        state._carrier = DeviceCarrier(None)
    errors = []
    for step, size in enumerate(SERIES):
        found = run_products(ddp, rank, step, [size] * len(SHAPES))
        expected = mean_of(ranks, step, [size] * len(SHAPES))
        errors.append(max(((f / size - e / size).norm() / (e / size).norm()).item() for f, e in zip(found, expected)))
    return errors


@pytest.mark.parametrize("ranks, is_device", [(2, False), (3, False), (2, True)])
def test_gradients_that_exploded_or_fell_are_right_again_in_the_next_step(ranks, is_device):
    for errors in run_ranks(ranks, _series, ranks, is_device):
        imprecise = [step for step, error in enumerate(errors) if error > 5e-4]
        assert imprecise == [8, 12, 16], errors


def _any_series(rank, ranks, seed):
    """Any magnitudes, with jumps either way: the worst error of a value, in the largest of its parameter."""
    random = Random(seed)  # alike on all ranks
    ddp, state = wrap(Products(SHAPES))
    stds = [2.0 ** random.uniform(-30, 30) for _ in SHAPES]
    worst = 0.0
    for step in range(80):
        has_jumped = False
        for at in range(len(stds)):
            if random.random() < 0.05:
                stds[at] = random.choice([0.0, 2.0 ** random.uniform(-100, 110), 2.0 ** random.uniform(-30, 30)])
                has_jumped = True
        found = run_products(ddp, rank, step, stds)
        if has_jumped:
            continue  # what has fallen is seen by the next exchange
        drawn = [draw(other, step, stds) for other in range(ranks)]
        for value, *given in zip(found, *drawn):
            largest = max(one.abs().max().item() for one in given)
            mean = sum(one.double() for one in given) / ranks
            worst = max(worst, ((value - mean).abs().max().item() / largest) if largest else value.abs().max().item())
    return worst, state.redone


@pytest.mark.parametrize("ranks", [2, 3])
def test_after_any_series_of_magnitudes_each_parameter_is_within_its_bound(ranks):
    seed = randrange(2**31)
    print(f"seed {seed}")
    for worst, redone in run_ranks(ranks, _any_series, ranks, seed):
        assert 2**-13 < worst <= 2**-10
        assert redone > 0


def _tiny(rank):
    """Parameters of one bucket whose gradients are 1e-9 of its largest, such as those of attention's key biases."""
    shapes = [(40, 40), (40,), (40,)]
    ddp, state = wrap(Products(shapes))
    errors = []
    for step in range(4):
        drawn = []
        for other in range(2):
            generator = torch.Generator().manual_seed(step * 100 + other)
            sized = zip(shapes, (1, 1e-9, 1e-12))
            drawn.append([torch.randn(shape, generator=generator) * std for shape, std in sized])
        ddp.zero_grad()
        ddp(drawn[rank]).backward()
        found = [parameter.grad for parameter in ddp.parameters()]
        errors.append([((f - (a + b) / 2).norm() / ((a + b) / 2).norm()).item() for f, a, b in zip(found, *drawn)])
    return errors[-1], [scale.exponents for scale in state._groups.values()]


def test_each_parameter_keeps_its_precision_however_small_it_is_beside_others():
    for errors, exponents in run_ranks(2, _tiny):
        assert len(exponents) == 1 and 1e-5 < max(errors) < 6e-4, (errors, exponents)


def _accumulate(rank):
    stds = [1e-3] * len(SHAPES)
    ddp, state = wrap(Products(SHAPES))
    for step in range(3):
        run_products(ddp, rank, step, stds)
    ddp.zero_grad()
    with ddp.no_sync():
        ddp(draw(rank, 10, stds)).backward()
    ddp(draw(rank, 11, stds)).backward()
    found = [parameter.grad.clone() for parameter in ddp.parameters()]
    expected = [a + b for a, b in zip(mean_of(2, 10, stds), mean_of(2, 11, stds))]
    return state.step, max(((f - e).norm() / e.norm()).item() for f, e in zip(found, expected))


def test_no_sync_accumulates_without_an_exchange():
    for steps, error in run_ranks(2, _accumulate):
        assert steps == 4 and error <= 5e-4


def _empty(rank, ranks, levels, is_device):
    """The parameter that is registered first is in the last bucket, alone."""
    ddp = DistributedDataParallel(Products([(0, 7), (300, 20), (50, 50)]), bucket_cap_mb=CAP_MB / 4)
    state = ScaledHalf(ddp.module.parameters(), levels=levels)
    if is_device:
        state._carrier = DeviceCarrier(None)
    ddp.register_comm_hook(state, scaled_half_hook)
    for _ in range(4):
        ddp.zero_grad()
        ddp([torch.zeros(0, 7), torch.full((300, 20), float(rank)), torch.full((50, 50), 2.0 * rank)]).backward()
    return [parameter.grad.unique().tolist() for parameter in ddp.parameters()]


@pytest.mark.parametrize("ranks, levels, is_device", [(2, 1, False), (3, 1, False), (2, 1, True), (2, 2, False)])
def test_a_bucket_of_empty_parameters_is_exchanged_like_any_other(ranks, levels, is_device):
    mean = (ranks - 1) / 2
    for found in run_ranks(ranks, _empty, ranks, levels, is_device):
        assert found == [[], [mean], [2 * mean]]
