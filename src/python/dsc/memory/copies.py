"""Copies between device and host, on their own queues: a thread each on CPU, a stream each on CUDA."""

import queue
import threading

import torch


class CpuCopies:
    """Deferred copies on one thread per direction; the accounting device's stand-in for copy engines."""

    is_cuda = False

    def __init__(self, delay=None):
        self._delay = delay  # for tests: called with ("out" | "in") before each copy
        self._queues = {"out": queue.SimpleQueue(), "in": queue.SimpleQueue()}
        self._threads = {}

    def pinned(self, size):
        return torch.empty(size, dtype=torch.uint8)

    def start_out(self, host, device_bytes):
        return self._submit("out", host, device_bytes)

    def start_in(self, device_bytes, host, after=None):
        return self._submit("in", device_bytes, host, after)

    def wait_out(self, copy):
        copy.wait()

    def wait_in(self, copy):
        copy.wait()

    def wait_on_host(self, copy):
        copy.wait()

    def is_done(self, copy):
        return copy.is_done()

    def release(self, arena):
        pass

    def close(self):
        for direction in list(self._threads):
            self._queues[direction].put(None)
            self._threads.pop(direction).join()

    def _submit(self, direction, target, source, after=None):
        if direction not in self._threads:
            thread = threading.Thread(target=self._work, args=(direction,), daemon=True, name=f"dsc-{direction}")
            self._threads[direction] = thread
            thread.start()
        copy = _Copy(target, source, after)
        self._queues[direction].put(copy)
        return copy

    def _work(self, direction):
        while (copy := self._queues[direction].get()) is not None:
            if self._delay is not None:
                self._delay(direction)
            copy.run()
            del copy  # else this thread would keep the device's memory until the next copy


class _Copy:
    """One copy; drops both tensors as soon as it is done."""

    def __init__(self, target, source, after):
        self._target, self._source, self._after = target, source, after
        self._done = threading.Event()
        self._error = None

    def run(self):
        try:
            if self._after is not None:
                self._after.wait()
            with torch.no_grad():
                self._target.copy_(self._source)
        except BaseException as error:  # handed to whoever waits
            self._error = error
        self._target = self._source = self._after = None
        self._done.set()

    def is_done(self):
        return self._done.is_set()

    def wait(self):
        self._done.wait()
        if self._error is not None:
            raise self._error


class CudaCopies:
    """Copies on two side streams, ordered by events; nothing here blocks the host.

    Dropping a tensor whose copy out is awaited by the compute stream is safe: its memory returns to that stream's
    pool, and whatever takes it next runs after the copy.
    """

    is_cuda = True

    def __init__(self, device):
        self._device = device
        self._out = torch.cuda.Stream(device)
        self._in = torch.cuda.Stream(device)

    def pinned(self, size):
        # torch's own pinned allocator rounds up to a power of two (1.3 to 1.7 times): pin an exact buffer instead.
        arena = torch.empty(size, dtype=torch.uint8)
        status = torch.cuda.cudart().cudaHostRegister(arena.data_ptr(), size, 0)
        if int(status) != 0:
            raise MemoryError(f"cudaHostRegister refused {size} bytes (status {int(status)})")
        return arena

    def release(self, arena):
        torch.cuda.cudart().cudaHostUnregister(arena.data_ptr())

    def start_out(self, host, device_bytes):
        self._out.wait_event(self._now())
        return self._copy(self._out, host, device_bytes)

    def start_in(self, device_bytes, host, after=None):
        self._in.wait_event(self._now())  # the slot's last reader has been queued before this instant
        if after is not None:
            self._in.wait_event(after)
        return self._copy(self._in, device_bytes, host)

    def wait_out(self, event):
        torch.cuda.current_stream(self._device).wait_event(event)

    wait_in = wait_out

    def wait_on_host(self, event):
        event.synchronize()

    def is_done(self, event):
        return event.query()

    def close(self):
        self._out.synchronize()
        self._in.synchronize()

    def _now(self):
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self._device))
        return event

    def _copy(self, stream, target, source):
        with torch.cuda.stream(stream), torch.no_grad():
            target.copy_(source, non_blocking=True)
            event = torch.cuda.Event()
            event.record(stream)
        return event
