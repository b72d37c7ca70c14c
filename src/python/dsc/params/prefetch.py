"""Copies parameters from the mirror to the device, a layer ahead of the forward."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeAlias

import torch

from .errors import ParamsError
from .mirror import Mirror

Layer: TypeAlias = list[tuple[torch.Tensor, int]]  # parameters, with the first element of each in a half of the mirror


class Prefetch:
    """Copies one step's parameters from the mirror to the device, a layer ahead of the forward, on a thread.

    All layers come from one version; a pull between two layers, which only a caller can make, raises.

    Args:
        mirror: that is copied from.
        copy_all: copies the parameters of a layer from a half of the mirror.
        layers: in the order in which they run.
    """

    def __init__(self, mirror: Mirror, copy_all: Callable[[Layer, torch.Tensor], None], layers: list[Layer]) -> None:
        self._mirror, self._copy_all = mirror, copy_all
        self._layers = layers
        self._done = [threading.Event() for _ in layers]
        self._wanted: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._asked = -1
        self.version = mirror.version
        self._thread = threading.Thread(target=self._work, daemon=True, name="dsc-prefetch")
        self._thread.start()
        self._ask(0)

    def need(self, index: int) -> None:
        """Blocks until the parameters of a layer are there, and starts to copy the next layer's."""
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

    def _copy(self, layer: Layer) -> int:
        with torch.no_grad():
            return self._mirror.read(lambda half: self._copy_all(layer, half))
