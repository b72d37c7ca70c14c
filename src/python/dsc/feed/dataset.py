"""FeedDataset: batches of this rank, in the order that (seed, epoch) determines."""

import os

from .client import FeedClient
from .errors import FeedError, FeedGone
from .launch import ensure_feed
from .state import make_state

try:
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:  # without torch it is a plain iterable
    IterableDataset = object

    def get_worker_info():
        return None


def _rank_and_world(rank, world):
    """Arguments beat torch.distributed, which beats the environment."""
    if rank is not None or world is not None:
        return rank or 0, world or 1
    try:
        import torch.distributed as distributed

        if distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except ImportError:
        pass
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _locate(name):
    """A folder by its whole path, so that processes elsewhere mean the same one; a dataset by its name."""
    return os.path.abspath(name) if os.path.isdir(name) else str(name)


class FeedDataset(IterableDataset):
    """An iterable of batches. `target` is a directory or the name of a dataset that `dsc prepare` has staged.

    mix          instead of `target`: {"web": 1, "code": 2.5} visits each sample of `web` once an epoch and those of `code`
                 two or three times; 0.1 visits a tenth of them, another tenth in the next epoch
    only         extensions of the files that are samples, such as 'png,jpg'; default: all files
    batch_size   samples per rank in one step
    last         'drop' | 'pad' (wraps around, samples flagged) | 'uneven'
    transform    function of a Sample; without it batches are dsc.feed.batch.Batch
    copy         False: views into the shared arena, valid until the next batch; True: bytes of one's own
    on_error     'raise' names a sample that no source can give; 'skip' leaves it out of its batch and into the state
    rank, world  default: torch.distributed, then RANK and WORLD_SIZE
    assign       'fixed' | 'local' (striped storage nodes that are the machines of the job, in the order of the ranks:
                 most samples are read where they lie; global batches stay the same as sets)
    replicate    so many consecutive ranks get the same samples
    memory, k    of the feed, if this process starts it ('256MiB', 'auto')
    depth        batches on their way or in use per worker; default: 3, up to 32 where they are small
    """

    def __init__(self, target=None, *, mix=None, split=None, only=None, batch_size, seed=0, order=None, last="drop", assign="fixed", rank=None, world=None,
                 replicate=1, transform=None, copy=False, on_error="raise", memory=None, k=None, depth=None,
                 timeout=300.0, feed_options=()):
        if on_error not in ("raise", "skip"):
            raise FeedError("USAGE", f"on_error is {on_error!r}, not 'raise' or 'skip'")
        self.on_error = on_error
        if (target is None) == (mix is None):
            raise FeedError("USAGE", "give either a dataset or mix={name: times, ...}")
        self.mix = None if mix is None else ",".join(f"{_locate(name)}={times!r}" for name, times in mix.items())
        self.target, self.split, self.batch_size, self.seed = str(target if mix is None else self.mix), split, batch_size, seed
        self.order, self.last, self.assign, self.replicate = order, last, assign, replicate
        self.rank, self.world = _rank_and_world(rank, world)
        self.transform, self.copy, self.depth, self.timeout = transform, copy, depth, timeout
        options = [] if mix is None else ["--mix", self.mix]
        options += [] if split is None else ["--split", split]
        options += [] if only is None else ["--only", only]
        options += ["--seed", str(seed)]
        for name, value in (("--order", order), ("--memory", memory), ("--k", k)):
            options += [] if value is None else [name, str(value)]
        self._options = [*options, *feed_options]
        self._socket_path = None
        self._client = None
        self._iterations = 0
        self._pass = None
        self._info = None
        self.skipped = []  # [epoch, id] of samples that the batches of this process came without
        self.keep = 0  # batches that stay valid although later ones were asked for; FeedLoader(ahead=...) sets it
        # Where the next iteration begins. None: the feed goes on to the epoch after the last one.
        self.next_epoch, self.next_step, self.run = None, 0, None

    @property
    def socket_path(self):
        if self._socket_path is None:
            self._socket_path = ensure_feed(None if self.mix else self.target, self._options, self.world)
        return self._socket_path

    def _connect(self, worker=0, workers=1):
        return FeedClient(self.socket_path, {
            "rank": self.rank, "world": self.world, "replicate": self.replicate, "batch": self.batch_size,
            "last": self.last, "assign": self.assign, "worker": worker, "workers": workers, "keep": self.keep, "onError": self.on_error, "seed": self.seed,
            **({} if self.depth is None else {"depth": self.depth}),
            **({} if self.order is None else {"order": self.order}),
        }, self.timeout)

    @property
    def info(self):
        """What the feed says about the dataset: n, fingerprint, stepsPerEpoch, globalBatch, ..."""
        if self._info is None:
            client = self._connect()
            self._info = client.info
            client.close()
        return self._info

    def __len__(self):
        return self.info["batchesPerEpoch"]

    def _own_client(self):
        """This process's connection; a forked copy of another process's is left alone."""
        worker = get_worker_info()
        if self._client is None or self._client.pid != os.getpid():
            self._client = self._connect(worker.id, worker.num_workers) if worker else self._connect()
            self._iterations = 0
            self._info = self._client.info
        return self._client

    def batches(self):
        """The batches of one pass, before `transform`."""
        client = self._own_client()
        is_first = self._iterations == 0
        self._iterations += 1
        worker = get_worker_info()
        # A persistent worker has a stale copy of these; from its second pass on, the feed counts the epochs.
        is_stale = worker is not None and not is_first
        epoch, step, run = (None, 0, None) if is_stale else (self.next_epoch, self.next_step, self.run)
        if worker is None:
            self.next_epoch, self.next_step, self.run = None, 0, None
        self._pass = this_pass = object()
        epoch, step = client.start(epoch, step, run)
        client.request(client.info["depth"])
        while True:
            if self._pass is not this_pass:  # what comes now is for the newer pass, on the same connection
                raise FeedError("FEED_GONE", "this pass has ended, because a newer one was begun")
            try:
                batch = client.next_batch(self.keep)
            except FeedGone as gone:
                if worker is not None:  # the loader knows what the trainer has received
                    raise
                raise gone.after(make_state(self, epoch, step, self.skipped)) from None
            if batch is None:
                return
            self.skipped += ([batch.epoch, id] for id in client.lost)
            step = batch.step + 1
            # torch pickles what a worker yields in a thread, while the worker already asks for its next batch.
            yield batch.copy() if self.copy or worker is not None else batch

    def __iter__(self):
        transform = self.transform
        for batch in self.batches():
            yield batch if transform is None else [transform(sample) for sample in batch]

    def __getstate__(self):
        return {**self.__dict__, "_client": None, "_pass": None, "_socket_path": self.socket_path}

    def close(self):
        """Ends the connection. Used again, it finds the feed again, or starts it."""
        self._socket_path = None
        if self._client is not None and self._client.pid == os.getpid():
            self._client.close()
        self._client = None
