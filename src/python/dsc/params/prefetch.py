"""Copies parameters from the mirror to the device, a layer ahead of the forward."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

import torch

from .errors import ParamsError

if TYPE_CHECKING:
    from .client import ParameterClient


class Prefetch:
    """Copies one step's parameters from the mirror to the device, a layer ahead of the forward, on a thread.

    All layers come from one version; a pull between two layers, which only a caller can make, raises.
    """

    def __init__(self, client: ParameterClient, layers: list[list[tuple[torch.Tensor, int]]]) -> None:
        self._client = client
        self._layers = layers
        self._done = [threading.Event() for _ in layers]
        self._wanted: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._asked = -1
        self.version = client.mirror.version
        self._thread = threading.Thread(target=self._work, daemon=True, name="dsc-prefetch")
        self._thread.start()
        self._ask(0)

    def need(self, index: int) -> None:
        """Blocks until the parameters of a layer are there, and has the next layer's copied meanwhile."""
        self._ask(min(index + 1, len(self._layers) - 1))
        self._done[index].wait()
        if index == len(self._layers) - 1:
            for done in self._done:
                done.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ends the thread, after the layer that it is copying. What was not copied stays as it is."""
        self._wanted.put(None)
        self._thread.join()

    def _ask(self, index: int) -> None:
        while self._asked < index:
            self._asked += 1
            self._wanted.put(self._asked)

    def _work(self) -> None:
        for _ in self._layers:
            index = self._wanted.get()
            if index is None:
                return
            try:
                version = self._copy(self._layers[index])
                if version != self.version:
                    raise ParamsError("version", f"a pull of version {version} overtook step of {self.version}")
            except BaseException as error:
                self._error = error
            self._done[index].set()

    def _copy(self, layer: list[tuple[torch.Tensor, int]]) -> int:
        with torch.no_grad():
            return self._client.mirror.read(lambda half: self._client.copy_all(layer, half))
