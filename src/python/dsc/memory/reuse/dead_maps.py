"""Where a feature gradient may be written: into the memory of a saved map that nobody reads any more."""

from __future__ import annotations

from typing import Protocol

import torch

from ...torch_private import storage_uses


class DeadMaps(Protocol):
    """Knows, while a backward runs, which saved maps it was the last to ask for."""

    def space_of(self, saved: torch.Tensor) -> torch.Tensor | None:
        """A tensor like ``saved``, in its memory, to write a gradient to. None: the map may be read again.

        The caller must have read all that it needs of ``saved``, or write each element after its last read.
        """


def space_of_last(saved: torch.Tensor, holders: int) -> torch.Tensor | None:
    """The memory of a tensor that only its reader and ``holders`` others have, as a new tensor; None if there are more.

    It must be all of its storage: what is left of a larger one would be kept for nothing.
    """
    if storage_uses(saved) > 1 + holders:
        return None
    storage = saved.untyped_storage()
    if storage.nbytes() != saved.numel() * saved.element_size():
        return None
    # Not a view: autograd adds gradients up in place where nothing else shares their memory.
    return torch.empty(0, dtype=saved.dtype, device=saved.device).set_(
        storage, saved.storage_offset(), saved.shape, saved.stride()
    )


def space_now(maps: DeadMaps, saved: torch.Tensor) -> torch.Tensor | None:
    """``maps.space_of(saved)``; None, too, in a backward that is differentiated itself: it needs its maps again."""
    return None if torch.is_grad_enabled() else maps.space_of(saved)
