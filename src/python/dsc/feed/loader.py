"""FeedLoader: a DataLoader over a FeedDataset that knows where it is."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast

from torch.utils.data import DataLoader, default_collate

from ..torch_private import end_workers, workers_of
from .ahead import Ahead
from .dataset import FeedDataset
from .errors import FeedError, FeedGone, pass_has_ended
from .handover import forget_workers
from .lightning_place import find_fit_loop, moves_elsewhere
from .parcels import CollateParcel, Parcel, Parcels
from .position import Begun
from .rest_of_epoch import OPTIONS, RestOfEpoch, find_skip
from .state import find_place, make_state
from .worker_failure import explain_worker_failure


class FeedLoader:
    """Iterating it gives one epoch of batches; the next iteration gives the next epoch.

    Its state is where the trainer has received batches up to, without what workers have read ahead: about 200 bytes,
    the same on every rank, valid for other numbers of ranks, workers and storage nodes.

    Args:
        dataset: what is read.
        num_workers: processes that transform and collate.
        collate_fn: of a batch; default, with a transform: torch's default_collate.
        pin_memory: as DataLoader has it.
        ahead: so many batches are transformed and collated in a thread while the trainer works; 0: when asked for;
            'auto': as many as the feed has room for, 32 at most.
        **options: of DataLoader.

    Raises:
        ValueError: `ahead` with workers, which read ahead themselves; a dataset of single samples.
    """

    def __init__(
        self,
        dataset: FeedDataset,
        *,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        ahead: int | Literal["auto"] = 0,
        **options: Any,
    ) -> None:
        if dataset.reading.batch_size is None:
            raise ValueError("FeedLoader reads batches: give FeedDataset a batch_size")
        if ahead and num_workers:
            raise ValueError(
                "ahead is for loaders without workers, which read ahead themselves: num_workers=0, or prefetch_factor="
            )
        if options.get("in_order") is False:
            raise ValueError("in_order=False would lose samples at resume: the state counts batches in their order")
        self._dataset = dataset
        self._ahead = ahead
        self._running: Ahead[Parcel] | None = None
        dataset.connections.keep = ahead
        if collate_fn is None and dataset.transform is not None:
            collate_fn = default_collate
        self._loader: DataLoader[Parcel] = DataLoader(
            Parcels(dataset),
            batch_size=None,
            num_workers=num_workers,
            pin_memory=pin_memory,
            # Rooms of a worker: for what it makes ahead, what it makes now, and what the trainer has.
            collate_fn=cast(
                Callable[[Any], Any],
                CollateParcel(collate_fn or _as_is, (options.get("prefetch_factor") or 2) + 2),
            ),
            **options,
        )
        self._epoch, self._step = 0, 0
        self._wanted_epoch: int | None = None
        self._is_resuming = True
        self._pass = 0
        self._worker_passes = 0  # of the present persistent workers
        self._pid = 0  # of the process that the pass belongs to
        self._skipped: list[list[int]] = []
        self._is_given_back = False  # Lightning has loaded the state that the next pass begins at

    @property
    def dataset(self) -> Any:
        """The dataset; for Accelerate's `skip_first_batches` what is left of the epoch."""
        skip = find_skip()
        if skip is None:
            return self._dataset
        if skip.epoch is not None:
            self.set_epoch(skip.epoch)
        return RestOfEpoch(skip.batches, len(self), self._begin_after)

    def __getattr__(self, name: str) -> Any:
        if name in OPTIONS and find_skip() is not None:
            return OPTIONS[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and step that it is at: of the batch that comes next."""
        return self._epoch, self._step

    def go_to(self, epoch: int, step: int) -> None:
        """Makes the next pass begin there."""
        self._epoch, self._step = epoch, step
        self._wanted_epoch = None
        self._is_resuming = True
        self._end_pass()
        self._end_workers()  # persistent workers would go on where they are

    def _begin_after(self, batches: int) -> Iterator[Any]:
        self._choose_place()
        epoch, step = self._epoch, self._step + batches
        if step >= len(self):
            self.go_to(epoch + 1, 0)
            return iter(())
        self.go_to(epoch, step)
        return iter(self)

    def _choose_place(self) -> None:
        wanted, self._wanted_epoch = self._wanted_epoch, None
        if wanted is not None and not (self._is_resuming and wanted == self._epoch):
            self._epoch, self._step = wanted, 0
        elif not self._is_resuming and self._step > 0:  # a pass was left early: the next one is the next epoch
            self._epoch, self._step = self._epoch + 1, 0
        self._is_resuming = False

    def __iter__(self) -> Iterator[Any]:
        self._choose_place()
        self._end_pass()
        self._pid = os.getpid()
        with self._dataset.waits.counted(is_start=True):
            self._dataset.hold()
        # The choice of one feed holds for the next, too.
        self._dataset.connections.keep = self._dataset.info["keep"]
        self._worker_passes += 1
        self._dataset.position.set(
            self._epoch, self._step, self._worker_passes if self._loader.persistent_workers else 0
        )
        self._dataset.appointed = Begun(self._epoch, self._step, uuid.uuid4().hex)
        with self._dataset.waits.counted(is_start=False):
            batches = iter(self._loader)  # starts the workers
        return self._one_pass(self._pass, batches)

    def _end_workers(self) -> None:
        end_workers(self._loader)
        self._worker_passes = 0

    def _end_pass(self) -> None:
        self._pass += 1
        if self._running is not None:
            self._running.stop()
            self._running = None

    def _at_this_place(self, error: FeedError) -> FeedError:
        """The error as the trainer gets it. A feed that is gone is forgotten: the next pass finds or starts one."""
        if not isinstance(error, FeedGone):
            return error
        self._dataset.close()
        self._end_workers()  # persistent workers know the old feed only
        return error.after(self.state_dict())

    def _check_pass(self, this_pass: int) -> None:
        if os.getpid() != self._pid:
            raise FeedError(
                "USAGE",
                f"this pass was begun by process {self._pid}, of which process {os.getpid()} is a forked copy",
                "begin a pass in the process that reads: iter(loader)",
            )
        if this_pass != self._pass:
            raise pass_has_ended()

    def _one_pass(self, this_pass: int, batches: Iterator[Parcel]) -> Iterator[Any]:
        self._check_pass(this_pass)
        is_given_back, self._is_given_back = self._is_given_back, False
        if moves_elsewhere(self, is_given_back=is_given_back):
            del batches
            yield from iter(self)
            return
        workers = workers_of(batches)
        add_wait = self._dataset.waits.add
        if self._ahead:
            batches = self._running = Ahead(batches, self._dataset.info["keep"])
        try:
            while True:
                # Before a batch is taken: persistent workers have one iterator for all passes.
                if this_pass != self._pass or os.getpid() != self._pid:
                    self._check_pass(this_pass)
                began = time.monotonic()
                try:
                    parcel = next(batches, None)
                except (RuntimeError, OSError, EOFError) as error:
                    failure = explain_worker_failure(error, workers, self.state_dict())
                    if failure is None or isinstance(error, FeedError):
                        raise
                    self._end_workers()
                    raise failure from error
                share = parcel.feed_share if parcel is not None else 0.0
                is_time_to_tell = add_wait(began, share)
                if parcel is None or parcel.error is not None:
                    break
                self._step += 1
                if parcel.skipped:
                    self._skipped += parcel.skipped
                if is_time_to_tell:
                    self._dataset.tell_waits()
                yield parcel.batch
        finally:
            if this_pass == self._pass and self._running is not None:
                self._running.stop()
                self._running = None
            elif this_pass == self._pass and hasattr(batches, "close"):
                batches.close()
            forget_workers()
            self._dataset.tell_waits(is_last=True)
        if parcel is not None and parcel.error is not None:
            del batches  # its workers end now; kept alive by a traceback they would be waited for when that is freed
            raise self._at_this_place(parcel.error)
        self._epoch, self._step = self._epoch + 1, 0

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration that epoch's; a place inside of it that a state was loaded for stays.

        Nobody has to call it: without it, each iteration is the epoch after the last one.
        """
        self._wanted_epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the trainer is: what it needs to go on with the very next batch."""
        return make_state(self._dataset, self._epoch, self._step, self._skipped)

    def load_state_dict(self, state: dict[str, Any], override: bool = False) -> None:
        """Goes to where `state` was taken.

        Args:
            state: of `state_dict()`, or the `state` of a FeedGone.
            override: takes a state of other data, another order or seed, too.

        Raises:
            FeedError: the state does not fit; the message says what differs.
        """
        self.go_to(*find_place(self._dataset, state, override=override))
        self._skipped = list(state.get("skipped", []))
        self._is_given_back = find_fit_loop() is not None

    def close(self) -> None:
        """Ends the pass and the connection."""
        self._end_pass()
        self._end_workers()
        forget_workers()
        self._dataset.close()


def _as_is(batch: Any) -> Any:
    return batch
