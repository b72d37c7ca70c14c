"""Private parts of PyTorch that dsc uses: all of it is here, tried with torch 2.15.0.

A newer PyTorch that moves one of these breaks this file only.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import _get_sequence_nr  # type: ignore[attr-defined]
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter

if TYPE_CHECKING:  # its annotations do not say that torch.distributed has it
    from torch._C._distributed_c10d import GradBucket as GradBucket
    from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter as ReduceScatter
else:
    from torch.distributed import GradBucket  # noqa: F401 (for others)


def __getattr__(name: str) -> Any:
    """Imports what FSDP has when it is asked for: half a second of the first batch of every feed otherwise."""
    if name != "ReduceScatter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter as found

    return found


_ACCUMULATE = 1 << 62  # AccumulateGrad nodes carry the largest sequence number of all


def storage_key(of: torch.Tensor | torch.UntypedStorage) -> int:
    """A number that a storage, of a sparse tensor its values', has for itself as long as it lives."""
    storage = storages_of(of)[0] if isinstance(of, torch.Tensor) else of
    return int(storage._cdata)


def storages_of(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
    """The storages that a tensor lies in: one, or one per part of a sparse tensor, its values' first."""
    local = getattr(tensor, "_local_tensor", None)  # of a DTensor: what this rank has of it
    if local is not None:
        return storages_of(local)
    if tensor.layout == torch.sparse_coo:
        parts = [tensor._values(), tensor._indices()]
    elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = [tensor.values(), tensor.crow_indices(), tensor.col_indices()]
    elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = [tensor.values(), tensor.ccol_indices(), tensor.row_indices()]
    else:
        parts = [tensor]
    return [part.untyped_storage() for part in parts]


def storage_uses(tensor: torch.Tensor) -> int:
    """How many tensors share a tensor's storage, itself among them. Tensors that Python cannot see count, too."""
    storage = tensor.untyped_storage()  # one more use while it is here
    return int(torch._C._storage_Use_Count(storage._cdata)) - 1


@contextlib.contextmanager
def watched_resizes(on_resized: Callable[[torch.UntypedStorage], None]) -> Iterator[None]:
    """A context in which somebody is told of storages that were resized: FSDP gives memory back by that.

    Contexts nest.
    """
    earlier = torch.UntypedStorage.resize_

    def resize(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        result: torch.UntypedStorage = earlier(storage, size)
        on_resized(storage)
        return result

    setattr(torch.UntypedStorage, "resize_", resize)  # noqa: B010 (types forbid to assign methods)
    try:
        yield
    finally:
        setattr(torch.UntypedStorage, "resize_", earlier)  # noqa: B010


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor, or a view of it, was changed in place; 0 for those of inference, which nobody counts."""
    return 0 if tensor.is_inference() else int(tensor._version)


def without_modes() -> AbstractContextManager[Any]:
    """A context in which no dispatch mode, such as an accounting device, sees operations."""
    return _disable_current_modes()


def saved_tensor_hook() -> Callable[..., Any] | None:
    """The function that gets the tensors which autograd saves now, if there is one."""
    hooks = torch._C._autograd._top_saved_tensors_default_hooks(True)
    return None if hooks is None else hooks[0]


def tree_leaves(nest: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts, in order."""
    return list(_pytree.tree_leaves(nest))


def tree_flatten(nest: Any) -> tuple[list[Any], Any]:
    """The leaves of nested lists, tuples and dicts, in order, and what `tree_unflatten` needs."""
    leaves, spec = _pytree.tree_flatten(nest)
    return list(leaves), spec


def tree_unflatten(leaves: list[Any], spec: Any) -> Any:
    """The nest that `tree_flatten` took apart."""
    return _pytree.tree_unflatten(leaves, spec)


def current_node() -> torch.autograd.graph.Node | None:
    """The autograd node that is running, inside a dispatch mode in backward; None in forward."""
    return torch._C._current_autograd_node()


def next_sequence_number() -> int:
    """The number that the next autograd node of this thread will carry."""
    return int(_get_sequence_nr())


def sequence_number_of(node: torch.autograd.graph.Node) -> int | None:
    """The number of a node; None for one that accumulates a gradient and belongs to no forward."""
    number = int(node._sequence_nr())
    return None if number >= _ACCUMULATE else number


def multiply_each(parts: Sequence[torch.Tensor], factors: Sequence[float], out: Sequence[torch.Tensor]) -> None:
    """Writes each part times its factor to its place; where the places are the parts themselves, in place."""
    if out is parts:
        torch._foreach_mul_(list(parts), list(factors))
    else:
        torch._foreach_copy_(list(out), torch._foreach_mul(list(parts), list(factors)))


def largest_magnitudes(parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Of each part the largest magnitude, NaN where there is one in it: on a GPU by one kernel for many parts."""
    if parts[0].is_cuda:
        return list(torch._foreach_norm(list(parts), float("inf")))
    bounds = [torch.aminmax(part) for part in parts]  # faster than norms are here
    return [torch.maximum(-low, high) for low, high in bounds]


def keep_busy(device: torch.device, microseconds: float) -> None:
    """Gives the device's current stream a kernel that does nothing for about so long."""
    with torch.cuda.device(device):
        cycles = microseconds * 1e-3 * _clock_khz(device)
        torch.cuda._sleep(int(cycles))


@functools.cache
def _clock_khz(device: torch.device) -> int:
    return int(getattr(torch.cuda.get_device_properties(device), "clock_rate", 2_000_000))


def clear_last_error(device: torch.device) -> None:
    """Takes away the error that a failed call of CUDA left: otherwise the next kernel raises it."""
    with contextlib.suppress(RuntimeError):
        torch.zeros(1, device=device)


def clear_forward_hooks(module: torch.nn.Module) -> None:
    """Takes every forward hook off a module."""
    module._forward_hooks.clear()
    module._forward_pre_hooks.clear()


def end_workers(loader: DataLoader[Any]) -> None:
    """Makes a loader forget its persistent workers: its next pass starts others."""
    loader._iterator = None


def workers_of(iterator: object) -> Sequence[Any]:
    """The processes that an iterator of a loader reads with; none without workers."""
    workers: Sequence[Any] = getattr(iterator, "_workers", ())
    return workers


def watch_loaders(
    mark: str,
    on_iter: Callable[[Any, Callable[[], Any]], Any],
    on_next: Callable[[Any, int, Callable[[], Any]], Any],
    on_fetch: Callable[[Any, Callable[[], Any]], Any],
) -> None:
    """Puts functions around what DataLoaders do with datasets that have the attribute `mark`. Others stay as they are.

    Args:
        mark: name of the attribute.
        on_iter: is called with the dataset, and what begins a pass, for which it may start workers.
        on_next: is called with the dataset, the number of workers, and what gives the trainer its next batch.
        on_fetch: is called with the dataset, and what makes a batch, in the process that makes it.
    """
    give = _BaseDataLoaderIter.__next__

    @functools.wraps(give)
    def give_next(self: Any) -> Any:
        if not hasattr(self._dataset, mark):
            return give(self)
        return on_next(self._dataset, self._num_workers, functools.partial(give, self))

    setattr(_BaseDataLoaderIter, "__next__", give_next)  # noqa: B010 (types forbid to assign methods)
    stateful = sys.modules.get("torchdata.stateful_dataloader")  # half a second to import for those who have it not
    for loader in [DataLoader] + ([stateful.StatefulDataLoader] if stateful else []):
        _watch_passes(loader, mark, on_iter)
    for kind in (_IterableDatasetFetcher, _MapDatasetFetcher):
        _watch_fetcher(kind, mark, on_fetch)


def _watch_passes(kind: Any, mark: str, on_iter: Callable[[Any, Callable[[], Any]], Any]) -> None:
    begin = kind.__iter__

    @functools.wraps(begin)
    def begin_pass(self: Any) -> Any:
        return on_iter(self.dataset, functools.partial(begin, self)) if hasattr(self.dataset, mark) else begin(self)

    kind.__iter__ = begin_pass


def _watch_fetcher(kind: Any, mark: str, on_fetch: Callable[[Any, Callable[[], Any]], Any]) -> None:
    make = kind.fetch

    @functools.wraps(make)
    def fetch(self: Any, index: Any) -> Any:
        if not hasattr(self.dataset, mark):
            return make(self, index)
        return on_fetch(self.dataset, functools.partial(make, self, index))

    kind.fetch = fetch
