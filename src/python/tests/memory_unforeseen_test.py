"""What a plan did not foresee, and what must never train on wrong values: it raises, or is a counted miss."""

import threading

import pytest

torch = pytest.importorskip("torch")

from memory_late_copies_test import LateCopies  # noqa: E402
from memory_networks import GPT, NETWORKS, loss_of  # noqa: E402
from memory_tools import make_plan, under  # noqa: E402
from memory_training import gradients as gradients_of  # noqa: E402
from memory_training import plan_of as plan_of_network  # noqa: E402
from torch import nn  # noqa: E402

from dsc.memory import Offload, PlanError, profile  # noqa: E402
from dsc.memory.carrying.copies import CpuCopies  # noqa: E402
from dsc.memory.carrying.cuda_copies import whole_pages  # noqa: E402


class Conjugated(nn.Module):
    """Multiplications save a factor that is conjugated lazily: its bytes alone have the other sign."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            wave = torch.complex(layer(x), x)
            x = torch.tanh((wave.conj() * (wave * wave)).imag)
        return x


def fresh(make, inputs):
    torch.manual_seed(0)
    return make(), inputs()


def gradients(make, inputs, executor=None):
    return gradients_of(*fresh(make, inputs), executor)


def plan_of(make, inputs, folder, budget):
    model, x = fresh(make, inputs)
    return make_plan(profile(model, x, loss=loss_of), folder, budget)[0]


def plan_of_gpt(folder):
    make, inputs = NETWORKS["gpt"]
    return plan_of(make, lambda: inputs(8), folder, "50%")


def test_a_tensor_that_is_conjugated_lazily_keeps_its_sign(tmp_path):
    inputs = lambda: torch.randn(256, 64)  # noqa: E731
    plan = plan_of(Conjugated, inputs, tmp_path, "80%")
    executor = Offload(plan)
    plain = gradients(Conjugated, inputs)
    assert all(map(torch.equal, plain, gradients(Conjugated, inputs, executor)))
    assert executor.counts["movedBytes"] > 0 and executor.counts["planMisses"] == 0


@pytest.mark.parametrize("is_moved", [True, False])
def test_a_saved_tensor_that_is_changed_in_place_raises_as_without_a_plan(is_moved, tmp_path):
    plan = plan_of_gpt(tmp_path)
    make, inputs = NETWORKS["gpt"]
    model, x = fresh(make, lambda: inputs(8))
    seen = []
    model.blocks[1].act.register_forward_hook(lambda module, args, output: seen.append(args[0]))
    for executor in (None, Offload(plan)):
        with under(executor):
            loss = loss_of(model(x))
            with torch.no_grad():
                (seen[-1] if is_moved else model.blocks[1].ln1.weight).add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_a_tensor_of_a_second_stream_makes_the_step_a_miss(tmp_path):
    copies = LateCopies()
    executor = Offload(plan_of_gpt(tmp_path), copies=copies)
    stream = ["first"]
    copies.stream = lambda: stream[0]

    class Switching(GPT):
        def forward(self, tokens):
            stream[0] = "first"
            self.blocks[2].register_forward_pre_hook(lambda module, args: stream.__setitem__(0, "second"))
            return super().forward(tokens)

    inputs = lambda: NETWORKS["gpt"][1](8)  # noqa: E731
    assert all(map(torch.equal, gradients(GPT, inputs), gradients(Switching, inputs, executor)))
    executor.end_step()
    assert "second stream" in executor.last_miss and executor.counts["movedBytes"] > 0
    assert copies.given_away == []


def test_waits_and_memory_of_a_step_are_its_streams_wherever_autograd_calls_from(tmp_path):
    copies = LateCopies()
    seen, current = [], []
    copies.stream = lambda: current[-1] if current else "the forward's"
    wait = copies.wait

    def noted(copy, on_late=None, stream=None):
        if on_late is None or getattr(on_late, "__name__", "") == "count_stall":
            seen.append(stream)  # of waits after which memory is given away
        wait(copy)

    class On:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            current.append(self.stream)

        def __exit__(self, *error):
            current.pop()

    copies.wait, copies.on = noted, On
    starts = copies.start_in

    def start_in(*args):
        seen.append(copies.stream())
        return starts(*args)

    copies.start_in = start_in
    executor = Offload(plan_of_gpt(tmp_path), copies=copies)
    model, inputs = fresh(GPT, lambda: NETWORKS["gpt"][1](8))
    with executor:
        loss = loss_of(model(inputs))
    copies.stream = lambda: current[-1] if current else "another"
    loss.backward()
    executor.end_step()
    assert executor.counts["plannedSteps"] == 1 and len(seen) > 10
    assert set(seen) == {"the forward's"}


def test_a_tensor_on_another_device_makes_the_step_a_miss(tmp_path):
    executor = Offload(plan_of_gpt(tmp_path))
    executor.host.device = torch.device("cuda:1")  # as if the first tensors that moved had been there
    inputs = lambda: NETWORKS["gpt"][1](8)  # noqa: E731
    assert all(map(torch.equal, gradients(GPT, inputs), gradients(GPT, inputs, executor)))
    assert "is on cpu, others that move are on cuda:1" in executor.last_miss


def test_a_forward_within_a_forward_is_refused(tmp_path):
    executor = Offload(plan_of_gpt(tmp_path))
    with executor, pytest.raises(PlanError, match="one per thread"), executor:
        pytest.fail("the second forward began")
    inputs = lambda: NETWORKS["gpt"][1](8)  # noqa: E731
    assert all(map(torch.equal, gradients(GPT, inputs), gradients(GPT, inputs, executor)))


def test_the_unpacks_of_two_threads_do_not_mix(tmp_path):
    """Autograd has a thread per device and one for the CPU: a model on both unpacks from both."""
    inside, most = [0], [0]

    class Slow(CpuCopies):
        def wait(self, copy, on_late=None, stream=None):
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            threading.Event().wait(0.002)
            inside[0] -= 1
            return super().wait(copy, on_late, stream)

    executor = Offload(plan_of_gpt(tmp_path), copies=Slow())
    model, inputs = fresh(GPT, lambda: NETWORKS["gpt"][1](8))
    with executor:
        loss = loss_of(model(inputs))
    handles = list(executor._step.handles)
    unpack = executor._step.unpack
    halves = handles[::2], handles[1::2]
    threads = [threading.Thread(target=lambda half=half: [unpack(handle) for handle in half]) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert executor._step.position == len(handles)
    executor.end_step()
    del loss


def test_a_slot_is_kept_until_the_thread_that_read_it_goes_on_to_another_layer(tmp_path):
    """Between its unpack and its kernel a thread reads the slot, whatever another thread has got to meanwhile."""
    executor = Offload(plan_of_gpt(tmp_path), copies=CpuCopies())
    model, inputs = fresh(GPT, lambda: NETWORKS["gpt"][1](8))
    with executor:
        loss = loss_of(model(inputs))
    step = executor._step
    layers = step.plan.layers
    handles = sorted(step.handles, key=lambda handle: -handle.sequence)

    def take(stash, is_planned):
        stash.in_arena = True
        step.slots.occupied[stash.move["storage"]] = 0, stash.move["bytes"]
        return torch.empty(stash.move["bytes"], dtype=torch.uint8)

    step.slots.take = take  # every reload in the arena, whatever the plan of this run's times is

    def is_last_in_arena(handle):
        step.unpack(handle)
        return handle.stash.in_arena and handle.stash.remaining == 0

    def unpack_on_a_thread(handle):
        thread = threading.Thread(target=lambda: step.unpack(handle))
        thread.start()
        thread.join()

    read = next(at for at, handle in enumerate(handles) if is_last_in_arena(handle))
    storage = handles[read].stash.move["storage"]
    others = [handle for handle in handles[read + 1 :] if layers[handle.sequence] != layers[handles[read].sequence]]
    assert storage in step.slots.occupied
    unpack_on_a_thread(others[0])
    assert storage in step.slots.occupied, "another thread went on: our kernel may not be queued yet"
    step.unpack(others[1])
    assert storage not in step.slots.occupied
    executor.end_step()
    del loss


def test_an_arena_to_be_pinned_shares_no_page_with_anything_else():
    import mmap

    for size in (0, 1, mmap.PAGESIZE, mmap.PAGESIZE + 1, 1 << 20):
        buffer, start, length = whole_pages(size)
        assert (buffer.data_ptr() + start) % mmap.PAGESIZE == 0 == length % mmap.PAGESIZE
        assert max(1, size) <= length < size + mmap.PAGESIZE + 1 and start + length <= buffer.numel()


def test_an_empty_tensor_that_no_plan_counts_leaves_the_plan_in_step(tmp_path):
    """As torch.utils.checkpoint up to 2.11 saves one for each block that a plan recomputes."""
    model, inputs, plan = plan_of_network("gpt", tmp_path, "60%")
    executor = Offload(plan)

    def save_nothing(module, inputs):
        torch.empty(0, requires_grad=True).sin()

    model.register_forward_pre_hook(save_nothing)
    gradients_of(model, inputs, executor)
    executor.end_step()
    assert executor.last_miss is None and executor.counts["plannedSteps"] == 1
    executor.close()
