"""Copies parameters from the mirror to the device, a layer ahead of the forward."""

import queue
import threading

import torch

from .errors import ParamsError


class Prefetch:
    """Copies one step's parameters from the mirror to the device, a layer ahead of the forward, on a thread.

    All layers come from one version; a pull between two layers, which only a caller can make, raises.
    """

    def __init__(self, client, layers):
        self._client = client
        self._layers = layers
        self._done = [threading.Event() for _ in layers]
        self._wanted = queue.SimpleQueue()
        self._error = None
        self._asked = -1
        self.version = client.mirror.version
        self._thread = threading.Thread(target=self._work, daemon=True, name="dsc-prefetch")
        self._thread.start()
        self._ask(0)

    def need(self, index):
        """Blocks until the parameters of a layer are there, and has the next layer's copied meanwhile."""
        self._ask(min(index + 1, len(self._layers) - 1))
        self._done[index].wait()
        if index == len(self._layers) - 1:
            for done in self._done:
                done.wait()
        if self._error is not None:
            raise self._error

    def _ask(self, index):
        while self._asked < index:
            self._asked += 1
            self._wanted.put(self._asked)

    def _work(self):
        for _ in self._layers:
            index = self._wanted.get()
            try:
                with torch.no_grad():
                    version = self._client.mirror.read(
                        lambda half, i=index: [self._client.copy(p, half, at) for p, at in self._layers[i]]
                    )
                if version != self.version:
                    raise ParamsError("version", f"a pull of version {version} overtook step of {self.version}")
            except BaseException as error:
                self._error = error
            self._done[index].set()
