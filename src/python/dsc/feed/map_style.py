"""Map-style access, for frameworks that insist on a dataset with an index and a batch sampler."""

import os

from .dataset import FeedDataset, get_worker_info
from .errors import FeedError, FeedGone

try:
    from torch.utils.data import Dataset, Sampler
except ImportError:
    Dataset = Sampler = object


class MapDataset(Dataset):
    """Samples by id. torch hands `__getitems__` a whole batch of ids, which is one message to the feed."""

    def __init__(self, target, *, transform=None, **options):
        self.feed = target if isinstance(target, FeedDataset) else FeedDataset(target, batch_size=1, **options)
        self.transform = transform
        self._client = None

    def __len__(self):
        return self.feed.info["n"]

    def __getitems__(self, ids):
        if self._client is None or self._client.pid != os.getpid():
            self._client = self.feed._connect()
        batch = self._client.get(ids)
        if self.transform is None or get_worker_info() is not None:  # it outlives the next request
            batch = batch.copy()
        return list(batch) if self.transform is None else [self.transform(sample) for sample in batch]

    def __getitem__(self, id):
        return self.__getitems__([id])[0]

    def __getstate__(self):
        return {**self.__dict__, "_client": None}


class FeedBatchSampler(Sampler):
    """The ids of this rank's batches, in the feed's order. Stateful: resume with StatefulDataLoader or by hand."""

    def __init__(self, feed):
        self.feed = feed
        self._epoch, self._step = 0, 0
        self._client = None

    def __len__(self):
        return self.feed.info["batchesPerEpoch"]

    def __iter__(self):
        if self._client is None or self._client.pid != os.getpid():
            self._client = self.feed._connect()
        size, total = self.feed.batch_size, len(self)
        ids, first = [], self._step
        while self._step < total:
            step = self._step
            if (step - first) % 64 == 0:
                try:
                    ids = self._client.ids(self._epoch, step, 64)
                except FeedGone as gone:
                    gone.state = self.state_dict()
                    raise
                base = step
            self._step += 1
            yield ids[(step - base) * size : (step - base + 1) * size]
        self._epoch, self._step = self._epoch + 1, 0

    def state_dict(self):
        return {"v": 1, "epoch": self._epoch, "step": self._step, "B": self.feed.info["globalBatch"],
                "fingerprint": self.feed.info["fingerprint"]}

    def load_state_dict(self, state):
        for name, current in (("fingerprint", self.feed.info["fingerprint"]), ("B", self.feed.info["globalBatch"])):
            if state[name] != current:
                raise FeedError("FEED_STATE_MISMATCH", f"the state has {name} {state[name]!r}, this feed has {current!r}")
        self._epoch, self._step = state["epoch"], state["step"]

    def __getstate__(self):
        return {**self.__dict__, "_client": None}
