"""`CudaCopies` on a pretended CUDA: which device and stream each call is made on, and what a graph capture meets."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from memory_late_copies_test import LateCopies  # noqa: E402
from memory_training import gradients, plan_of  # noqa: E402

from dsc.memory import Offload  # noqa: E402
from dsc.memory.carrying import cuda_copies, host_memory, step  # noqa: E402
from dsc.memory.plan.runnable_plan import PlanError  # noqa: E402
from dsc.memory.recording import copy_times  # noqa: E402
from dsc.memory.recording.timing import StepClock  # noqa: E402


class PretendedCuda:
    """Takes the place of `torch.cuda`; `log` has every call that matters, with the device or stream it was made on.

    Every device has the stream "main <device>"; side streams are "side 0", "side 1". Copies run at once.
    """

    def __init__(self):
        self.log = []
        self.device_now = 0
        self.streams_now = {}
        self.is_capturing = False
        self.made = 0

    def Stream(self, device):
        stream = PretendedStream(self, f"side {self.made}", device.index)
        self.made += 1
        return stream

    def Event(self, enable_timing=False):
        return PretendedEvent(self)

    def cudart(self):
        return self

    def cudaHostRegister(self, address, length, flags):
        self.log.append(("pin", self.device_now, flags))
        return 0

    def cudaHostUnregister(self, address):
        self.log.append(("unpin",))

    def current_stream(self, device):
        return self.streams_now.get(device.index) or PretendedStream(self, f"main {device.index}", device.index)

    def is_current_stream_capturing(self):
        return self.is_capturing

    @contextlib.contextmanager
    def device(self, device):
        before, self.device_now = self.device_now, device.index
        yield
        self.device_now = before

    @contextlib.contextmanager
    def stream(self, stream):
        before = self.device_now, dict(self.streams_now)
        self.device_now, self.streams_now[stream.device] = stream.device, stream
        yield
        self.device_now, self.streams_now = before


class PretendedStream:
    def __init__(self, cuda, name, device):
        self.cuda, self.name, self.device = cuda, name, device

    def wait_event(self, event):
        self.cuda.log.append(("wait", self.name, event.name))

    def synchronize(self):
        self.cuda.log.append(("synchronize", self.name))


class PretendedEvent:
    def __init__(self, cuda):
        self.cuda, self.name = cuda, None

    def record(self, stream):
        self.name = f"{stream.name} at {len(self.cuda.log)}"
        self.cuda.log.append(("record", stream.name))

    def query(self):
        return True

    def synchronize(self):
        pass


@pytest.fixture
def cuda(monkeypatch):
    pretended = PretendedCuda()
    monkeypatch.setattr(torch, "cuda", pretended)
    return pretended


SECOND = torch.device("cuda", 1)


def test_memory_is_pinned_for_all_devices_without_opening_the_current_one(cuda):
    queues = cuda_copies.CudaCopies(SECOND)
    queues.release(queues.pinned(10_000))
    assert cuda.log == [("pin", 1, 1), ("synchronize", "side 0"), ("synchronize", "side 1"), ("unpin",)]
    assert cuda.device_now == 0


def test_memory_of_an_executor_that_goes_is_unpinned_after_its_copies(cuda):
    queues = cuda_copies.CudaCopies(SECOND)
    arena = queues.pinned(10_000)
    del queues, arena
    assert cuda.log[1:] == [("synchronize", "side 0"), ("synchronize", "side 1"), ("unpin",)]


def test_memory_that_cannot_be_pinned_is_refused_and_leaves_no_error_behind(cuda, monkeypatch):
    cleared = []
    monkeypatch.setattr(cuda, "cudaHostRegister", lambda *of: 2)
    monkeypatch.setattr(cuda_copies, "clear_last_error", cleared.append)
    with pytest.raises(PlanError, match="cannot pin 12288 bytes of host memory"):
        cuda_copies.CudaCopies(SECOND).pinned(10_000)
    assert cleared == [SECOND]


def test_times_are_taken_on_the_stream_of_the_device_that_runs_the_model(cuda):
    clock = StepClock(SECOND)
    clock.mark("start")
    assert cuda.log == [("record", "main 1")]


def test_a_device_that_the_model_nearly_fills_is_measured_with_smaller_copies(cuda, monkeypatch):
    tried = []

    def time_copies(device, size, streams):
        tried.append(size)
        if size > copy_times.CUDA_SIZES[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return {"out": size / 1e10, "in": size / 2e10, "both": size / 1e10}

    monkeypatch.setattr(copy_times, "_time_cuda_copies", time_copies)
    found = copy_times.measure_copies.__wrapped__(SECOND)
    assert (found["d2hGBs"], found["h2dGBs"], found["bothGBs"]) == (10.0, 20.0, 20.0)
    assert tried == list(copy_times.CUDA_SIZES) and "hookUs" not in found


@pytest.mark.parametrize("prefix", ["", "total_"])
def test_page_cache_counts_as_free_in_a_control_group(tmp_path, monkeypatch, prefix):
    folder = tmp_path / ("memory" if prefix else "")
    folder.mkdir(exist_ok=True)
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if prefix else ("memory.max", "memory.current")
    for name, size in zip(names, (1000, 900)):
        (folder / name).write_text(f"{size}\n")
    (folder / "memory.stat").write_text(f"anon 150\n{prefix}inactive_file 500\n{prefix}active_file 250\n")
    monkeypatch.setattr(host_memory, "CGROUP", str(tmp_path))
    assert host_memory.free_host_bytes() == 1000 - (900 - 750)


def test_copies_follow_the_computation_of_their_own_device_whichever_is_current(cuda):
    queues = cuda_copies.CudaCopies(SECOND)
    host, on_device = torch.zeros(4, dtype=torch.uint8), torch.ones(4, dtype=torch.uint8)
    out = queues.start_out(host, on_device)
    assert cuda.log == [("record", "main 1"), ("wait", "side 0", "main 1 at 0"), ("record", "side 0")]
    cuda.log.clear()
    queues.start_in(on_device, host, after=out)
    assert cuda.log[:3] == [("record", "main 1"), ("wait", "side 1", "main 1 at 0"), ("wait", "side 1", out.name)]
    cuda.log.clear()
    queues.wait(out)
    assert cuda.log == [("wait", "main 1", out.name)]
    assert torch.equal(host, torch.ones_like(host)) and cuda.device_now == 0


def test_a_wait_is_of_the_stream_that_it_is_for(cuda):
    queues = cuda_copies.CudaCopies(SECOND)
    out = queues.start_out(torch.zeros(4, dtype=torch.uint8), torch.ones(4, dtype=torch.uint8))
    users = PretendedStream(cuda, "the user's", 1)
    cuda.log.clear()
    queues.wait(out, stream=users)
    with cuda.stream(users):
        queues.wait(out)
    assert cuda.log == [("wait", "the user's", out.name)] * 2


@pytest.mark.parametrize("call", ["start_out", "start_in", "wait"])
def test_no_copy_becomes_part_of_a_graph(cuda, call):
    queues = cuda_copies.CudaCopies(SECOND)
    room = torch.zeros(4, dtype=torch.uint8), torch.ones(4, dtype=torch.uint8)
    out = queues.start_out(*room)
    cuda.is_capturing = True
    cuda.log.clear()
    with pytest.raises(RuntimeError, match="a CUDA graph is being captured"):
        getattr(queues, call)(*((out,) if call == "wait" else room))
    assert cuda.log == []


def test_a_forward_that_is_captured_keeps_its_memory_and_the_next_one_moves_again(tmp_path, monkeypatch):
    model, inputs, plan = plan_of("gpt", tmp_path, "60%")
    moving = LateCopies()
    executor = Offload(plan, copies=moving)
    counts, misses = [], []
    for is_captured in (False, True, False):
        monkeypatch.setattr(step, "is_captured", lambda tensor, now=is_captured: now)
        before = moving.count
        gradients(model, inputs, executor)
        executor.end_step()
        counts.append(moving.count - before)
        misses.append(executor.last_miss)
    assert counts[0] > 0 and counts[1] == 0 and counts[2] == counts[0]
    assert misses[0] is None and "CUDA graph" in misses[1]
    assert moving.given_away == []
