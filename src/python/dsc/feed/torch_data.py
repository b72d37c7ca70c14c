"""The torch classes of a dataset; stand-ins where there is no torch, so that a feed can be read without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from torch.utils.data import Dataset as Dataset
    from torch.utils.data import IterableDataset as IterableDataset
    from torch.utils.data import Sampler as Sampler
    from torch.utils.data import get_worker_info as get_worker_info
else:
    try:
        from torch.utils.data import Dataset, IterableDataset, Sampler, get_worker_info
    except ImportError:
        Item = TypeVar("Item")

        class Dataset(Generic[Item]):
            """Stands in for torch's class."""

        IterableDataset = Sampler = Dataset

        def get_worker_info() -> Any:
            """There are no workers without torch."""
            return None
