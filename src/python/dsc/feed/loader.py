"""FeedLoader: a DataLoader over a FeedDataset that knows where it is."""

import typing
import uuid

from torch.utils.data import DataLoader, IterableDataset, default_collate

from .ahead import Ahead
from .errors import FeedError, FeedGone, pass_has_ended
from .state import make_state

_END = object()
_FIXED = ("fingerprint", "n", "order", "seed", "last", "mix")


class _Parcel(typing.NamedTuple):
    """What comes from a dataset, in the trainer's process or from a worker: torch turns the errors of workers into text."""

    batch: object
    skipped: list  # [epoch, id] of samples that the batch came without
    error: object


class _Parcels(IterableDataset):
    def __init__(self, dataset):
        self._dataset = dataset

    def __iter__(self):
        skipped, batches = self._dataset.skipped, iter(self._dataset)
        while True:
            known = len(skipped)
            try:
                batch = next(batches)
            except StopIteration:
                return
            except FeedError as error:
                yield _Parcel(None, [], error)
                return
            yield _Parcel(batch, skipped[known:], None)


class _CollateParcel:
    def __init__(self, collate):
        self._collate = collate

    def __call__(self, parcel):
        return parcel if parcel.error else parcel._replace(batch=self._collate(parcel.batch))


class FeedLoader:
    """Iterating it gives one epoch of batches; the next iteration gives the next epoch.

    Its state is where the trainer has received batches up to, whatever workers have read ahead: about 200 bytes,
    the same on every rank, valid for other numbers of ranks, workers and storage nodes.
    With a transform, batches are collated (default: torch's default_collate).
    ahead: so many batches are transformed and collated in a thread while the trainer works; 0: when asked for.
    """

    def __init__(self, dataset, *, num_workers=0, collate_fn=None, pin_memory=False, ahead=0, **options):
        if ahead and num_workers:
            raise FeedError("USAGE", "ahead is for loaders without workers, which read ahead themselves", "num_workers=0, or prefetch_factor=")
        self.dataset = dataset
        self._ahead, self._running = ahead, None
        dataset.keep = ahead
        if collate_fn is None and dataset.transform is not None:
            collate_fn = default_collate
        self._loader = DataLoader(_Parcels(dataset), batch_size=None, num_workers=num_workers, pin_memory=pin_memory,
                                  collate_fn=_CollateParcel(collate_fn or _as_is), **options)
        self._epoch, self._step = 0, 0
        self._is_resuming = True
        self._pass = 0
        self._skipped = []

    def __len__(self):
        return self.dataset.info["batchesPerEpoch"]

    def __iter__(self):
        if not self._is_resuming and self._step > 0:  # a pass was left early: the next one is the next epoch
            self._epoch, self._step = self._epoch + 1, 0
        self._is_resuming = False
        self._end_pass()
        dataset = self.dataset
        dataset.info  # the feed is started by this process, not by each worker
        dataset.next_epoch, dataset.next_step, dataset.run = self._epoch, self._step, uuid.uuid4().hex
        return self._one_pass(self._pass, iter(self._loader))

    def _end_pass(self):
        self._pass += 1
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _at_this_place(self, error):
        """The error as the trainer gets it. A feed that is gone is forgotten, so that the next pass finds or starts one."""
        if not isinstance(error, FeedGone):
            return error
        self.dataset.close()
        self._loader._iterator = None  # persistent workers know the old feed only
        return error.after(self.state_dict())

    def _check_pass(self, this_pass):
        if this_pass != self._pass:
            raise pass_has_ended()

    def _one_pass(self, this_pass, batches):
        self._check_pass(this_pass)
        if self._ahead:
            batches = self._running = Ahead(batches, self._ahead)
        try:
            while True:
                self._check_pass(this_pass)  # before a batch is taken: persistent workers have one iterator for all passes
                batch, skipped, error = next(batches, (None, None, _END))
                if error is not None:
                    break
                self._step += 1
                self._skipped += skipped
                yield batch
        finally:
            if this_pass == self._pass and self._running is not None:
                self._running.stop()
                self._running = None
            elif this_pass == self._pass and hasattr(batches, "close"):
                batches.close()
        if error is not _END:
            del batches  # its workers end now; kept alive by a traceback they would be waited for when that is freed
            raise self._at_this_place(error)
        self._epoch, self._step = self._epoch + 1, 0

    def set_epoch(self, epoch):
        """For trainers that insist: the feed advances epochs itself. Refused in the middle of one."""
        if self._step != 0 and epoch != self._epoch:
            raise FeedError("FEED_STATE_MISMATCH", f"set_epoch({epoch}) in the middle of epoch {self._epoch}")
        self._epoch = epoch

    def state_dict(self):
        return make_state(self.dataset, self._epoch, self._step, self._skipped)

    def load_state_dict(self, state, override=False):
        """Goes to where `state` was taken. Data, order or seed that differ are refused unless `override`."""
        info = self.dataset.info
        current = {**info, "last": self.dataset.last}
        for name in _FIXED:
            if not override and state[name] != current.get(name):
                raise FeedError("FEED_STATE_MISMATCH", f"the state has {name} {state[name]!r}, this feed has {current.get(name)!r}",
                                "load_state_dict(state, override=True) if that is meant")
        batch, position = info["globalBatch"], state["position"]
        if position % batch != 0:
            raise FeedError("FEED_STATE_MISMATCH", f"position {position} is no multiple of the global batch of {batch} samples",
                            f"resume with a global batch that divides {position}, such as {state['B']}")
        self._epoch, self._step = state["epoch"], position // batch
        self._skipped = list(state.get("skipped", []))
        if self._step >= info["stepsPerEpoch"]:
            self._epoch, self._step = self._epoch + 1, 0
        self._is_resuming = True
        self._end_pass()
        self._loader._iterator = None  # persistent workers would go on where they are

    def close(self):
        self._end_pass()
        self._loader._iterator = None
        self.dataset.close()


def _as_is(batch):
    return batch
