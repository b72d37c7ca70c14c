"""The peaks of a device as CUDA's allocator counts them, pretended: who restarts them, and what is planned by them."""

import pytest

torch = pytest.importorskip("torch")

from memory_networks import NETWORKS, loss_of  # noqa: E402

from dsc.memory.profiling import first_steps, fitted  # noqa: E402
from dsc.memory.profiling.observer import PeakMemory  # noqa: E402


class CountedPeak:
    """Takes the place of `PeakMemory`: the device's peak is what a record knows of, AdamW's state, and 12345 bytes."""

    def __init__(self, device):
        pass

    def begin(self):
        pass

    def turn(self):
        pass

    def end(self):
        first = CountedPeak.first
        on_device = first._record.device.peak_bytes + first._dropped.most_device_bytes
        self.bytes = on_device + CountedPeak.state_bytes + 12345


@pytest.mark.parametrize("is_resumed", [False, True])
def test_optimizer_state_counts_once_whenever_a_shape_is_first_seen(monkeypatch, is_resumed):
    make, inputs_of = NETWORKS["gpt"]
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    if is_resumed:
        loss_of(model(inputs_of(2))).backward()
        optimizer.step()
        optimizer.zero_grad()
    held = []

    class Seen(first_steps.FirstSteps):
        def run(self, *words):
            CountedPeak.first = self
            return super().run(*words)

    def plan(planner, profiled, held_bytes):
        held.append(profiled["nonTorchBytes"] + held_bytes)
        return real(planner, profiled, held_bytes)

    real = fitted._Planner.plan
    monkeypatch.setattr(fitted, "FirstSteps", Seen)
    monkeypatch.setattr(fitted._Planner, "plan", plan)
    monkeypatch.setattr(first_steps, "PeakMemory", CountedPeak)
    monkeypatch.setattr(first_steps, "counts_peaks", lambda device: True)
    _, step = fitted.fit(model, budget="99%", smallest="4KiB")
    CountedPeak.state_bytes = step._state_bytes_of([optimizer])
    for size in (8, 8, 4, 4, 8):
        for _ in range(3 if is_resumed else 1):  # accumulated: the first shape is planned before the optimizer's step
            step(lambda tokens: loss_of(model(tokens)), inputs_of(size))
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        # Exactly what the device then holds: AdamW counts its steps on the host.
        CountedPeak.state_bytes = step._state_bytes_of([optimizer])
    step.close()
    state_bytes = CountedPeak.state_bytes
    assert state_bytes > 0 and set(held) == {12345 + state_bytes}


def test_a_peak_that_restarts_is_logged_first(monkeypatch, caplog):
    device = torch.device("cuda", 1)
    peaks = {device: 7 * 2**30}
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda of: peaks[of])
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda of: peaks.update({of: 0}))
    observed = PeakMemory(device)
    with caplog.at_level("INFO", logger="dsc"):
        observed.begin()
    assert "cuda:1 restart; its peak until now: 7516192768 bytes" in caplog.text
    peaks[device] = 3
    observed.end()
    assert observed.bytes == 3
