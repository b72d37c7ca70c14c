"""FeedDataset: samples of this rank, in the order that (seed, epoch) determines."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .accelerate_guard import refuse_to_be_divided_again
from .batch import Batch, Sample
from .client import FeedClient
from .connections import Connections
from .errors import FeedGone, pass_has_ended
from .launch import JobFeed
from .loader_waits import watch_loaders
from .options import ReadOptions, rank_and_world, serve_options
from .position import Begun, Place, Position
from .state import find_place, make_state
from .timed_feed import count_items
from .torch_data import IterableDataset, get_worker_info
from .waits import Waits


class FeedDataset(IterableDataset[Any]):
    """An iterable of batches, or of samples. Each iteration is the next epoch, in any process or worker.

    Args:
        target: a directory or the name of a dataset that `dsc prepare` has staged.
        mix: instead of `target`: {"web": 1, "code": 2.5} visits each sample of `web` once an epoch and those of `code`
            two or three times; 0.1 visits a tenth of them, another tenth in the next epoch.
        split: the split of a dataset that has several.
        only: the files that are samples, such as 'png,jpg' or 'data/*.csv'; default: all.
        columns: of rows of Parquet files, such as ['image', 'label'], which are all that is unpacked; default: all.
        as_: 'files', 'shards', 'jsonl', 'csv', 'tsv', 'parquet', 'mds' or 'litdata': how samples lie in
            files, if not as they seem; {'csv': {'delimiter': ';', 'quote': 'none', 'header': False}} says how CSV
            is written where that is not what the feed finds.
        start: 'arriving' (default): a dataset that is not here is fed during its download; 'unproven': of shards also
            what is proven with its shard later; 'staged': once it is here.
        batch_size: samples per rank in one step; None: iterating gives single samples, for a DataLoader that makes
            batches itself.
        seed: of the order.
        order: 'shuffle' | 'feistel6' | 'sequential' | 'groups-16' (rows of Parquet, by groups); default: the feed's.
        last: 'drop' | 'pad' (wraps around, samples flagged) | 'uneven'.
        assign: 'fixed' | 'local' (striped storage nodes that are the machines of the job, in the order of the ranks:
            most samples are read where they lie; global batches stay the same as sets).
        rank: default: torch.distributed, then RANK.
        world: default: torch.distributed, then WORLD_SIZE.
        replicate: so many consecutive ranks get the same samples.
        transform: function of a Sample; without it batches are dsc.feed.batch.Batch.
        copy: False: views into the shared arena, valid until the next batch; True: bytes of one's own, as single
            samples and what comes from workers always are.
        on_error: 'raise' names a sample that no source can give, or a damaged shard; 'skip' leaves the sample out of
            its batch and into the state, and feeds what comes before the damage.
        memory: of the feed, if this process starts it ('256MiB', 'auto').
        k: of the feed, if this process starts it.
        depth: batches on their way or in use per worker; default: 3, up to 32 where they are small.
        timeout: seconds without a word after which a feed is given up.
        feed_options: further options of `dsc feed serve`.

    Raises:
        TypeError: an argument of another type.
        ValueError: an argument that has no such value.
        FeedError: on first use: the feed cannot be started, or refuses.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | None = None,
        *,
        batch_size: int | None,
        mix: Mapping[str, float] | None = None,
        split: str | None = None,
        only: str | None = None,
        columns: Sequence[str] | None = None,
        as_: str | Mapping[str, Mapping[str, Any]] | None = None,
        start: str | None = None,
        seed: int = 0,
        order: str | None = None,
        last: str = "drop",
        assign: str = "fixed",
        rank: int | None = None,
        world: int | None = None,
        replicate: int = 1,
        transform: Callable[[Sample], Any] | None = None,
        copy: bool = False,
        on_error: str = "raise",
        memory: str | None = None,
        k: int | str | None = None,
        depth: int | None = None,
        timeout: float = 300.0,
        feed_options: Sequence[str] = (),
    ) -> None:
        if transform is not None and not callable(transform):
            raise TypeError(f"transform is {transform!r}, expected a function")
        own_rank, own_world = rank_and_world(rank, world)
        self.reading = ReadOptions(
            batch_size, own_rank, own_world, replicate, last, assign, on_error, seed, order, depth
        )
        self.serving = serve_options(
            target,
            mix,
            feed_options=feed_options,
            split=split,
            only=only,
            columns=columns,
            as_=as_,
            on_error=None if on_error == "raise" else on_error,
            start=start,
            seed=seed,
            order=order,
            memory=memory,
            k=k,
        )
        self.transform = transform
        self.copy = copy
        self.skipped: list[list[int]] = []  # [epoch, id] of samples that the batches of this process came without
        self.is_packed_at_once = False  # what this worker yields; FeedLoader sets it
        self.connections = Connections(JobFeed(self.serving, own_world, timeout), self.reading)
        self.position = Position()
        self._home_pid = os.getpid()
        self.appointed: Begun | None = None  # where FeedLoader wants this process's pass, or a new worker's first one
        self._passes = 0  # of this process
        self._pass: object = None
        self._place: Place | None = None  # of the pass that runs
        self._loaded: Place | None = None  # where the next pass goes on
        self.waits = Waits()
        watch_loaders(self)

    def connect(self) -> FeedClient:
        """Opens another connection to the feed, beside those that the dataset itself reads with."""
        return self.connections.connect()

    @property
    def info(self) -> dict[str, Any]:
        """The feed's description of the dataset: n, fingerprint, stepsPerEpoch, globalBatch, ..."""
        return self.connections.info

    def expect_epoch(self, epoch: int) -> None:
        """Says where the next pass will begin, so that a feed started for it has that epoch's order ready."""
        self.connections.feed.epoch = epoch

    def hold(self) -> None:
        """Starts the feed if need be, and keeps it from ending for want of readers as long as this object is used."""
        self.connections.hold()

    @property
    def dsc_timed(self) -> FeedDataset:
        """The dataset whose feed hears what trainers waited for."""
        return self

    def own_connection(self) -> FeedClient | None:
        """A connection of this process, if it has one."""
        return self.connections.find_own()

    def tell_waits(self, *, is_last: bool = False) -> None:
        """Tells the feed what this trainer has waited for, if it is time."""
        client = self.own_connection()
        if client is not None:
            self.waits.tell(client, self.reading.rank, is_last=is_last)

    def __len__(self) -> int:
        return int(self.info["batchesPerEpoch"])

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration that epoch's; without it, it is the one after the last."""
        self.position.set_epoch(epoch)
        self.expect_epoch(epoch)

    def batches(self) -> Iterator[Batch]:
        """The batches of one pass, before `transform`."""
        self._passes += 1
        return self._batches(self._passes)

    def _batches(self, number: int) -> Iterator[Batch]:
        worker = get_worker_info()
        client, place = self._begin_pass(number)
        this_pass = self._pass
        self._place = place
        skipped = place.given if worker is not None else 0  # this worker's, before the state that it goes on from
        while True:
            client.check_process()
            if self._pass is not this_pass:  # what comes now is for the newer pass, on the same connection
                raise pass_has_ended()
            try:
                batch = client.next_batch(client.info["keep"])
            except FeedGone as gone:
                if worker is not None:  # the loader knows what the trainer has received
                    raise
                raise gone.after(self._state_at(place)) from None
            if batch is None:
                self._place = Place(place.epoch + 1, 0, 0)
                return
            if skipped > 0:
                skipped -= 1
                continue
            self.skipped += ([batch.epoch, id] for id in client.lost)
            place.given += 1
            # torch pickles what a worker yields in a thread, while the worker already asks for its next batch.
            yield batch.copy() if self.copy or (worker is not None and not self.is_packed_at_once) else batch

    def _begin_pass(self, number: int) -> tuple[FeedClient, Place]:
        """Begins the next pass, with a new feed if the last one has ended."""
        worker = get_worker_info()
        if worker is None and os.getpid() != self._home_pid:  # a copy of its own, not a worker of the pass
            self.position, self._home_pid = Position(*self.position.next()), os.getpid()
            self.connections.become_another_reader()
        self._pass = object()
        loaded, self._loaded = self._loaded, None
        appointed, self.appointed = self.appointed, None
        at = None if loaded is None else (loaded.epoch, loaded.step)
        epoch, step, run = self.position.begin_pass(number, appointed=appointed, at=at)
        self.expect_epoch(epoch)
        client = self.connections.open_client()
        try:
            client.start(epoch, step, run)
        except FeedGone:
            if not self.connections.feed.can_be_started_again:
                raise
            client = self.connections.reopen_client()
            client.start(epoch, step, run)
        return client, Place(epoch, step, 0 if loaded is None else loaded.given)

    def __iter__(self) -> Iterator[Any]:
        refuse_to_be_divided_again(self.reading.world)
        if get_worker_info() is not None:
            return self.items()
        if self.reading.batch_size is None and self.transform is None:
            return self._samples(count_items(self, self.batches()))  # cheaper than counting for every sample
        return count_items(self, self.items())

    def items(self) -> Iterator[Any]:
        """The same as iterating, for a caller that counts its own waits."""
        batches = self.batches()
        return self._samples(batches) if self.reading.batch_size is None else self._transformed(batches)

    def _transformed(self, batches: Iterator[Batch]) -> Iterator[Any]:
        transform = self.transform
        for batch in batches:
            yield batch if transform is None else [transform(sample) for sample in batch]

    def _samples(self, batches: Iterator[Batch]) -> Iterator[Any]:
        for batch in batches:
            for sample in batch.copy():  # a DataLoader keeps them in its batches longer than the arena does
                yield sample if self.transform is None else self.transform(sample)

    def state_dict(self) -> dict[str, Any]:
        """Where this process is, for torchdata's StatefulDataLoader; in a worker, where that worker is.

        Returns:
            What `FeedLoader.state_dict()` gives, and what a worker has given of its part since then.
        """
        place = self._loaded or self._place or Place(*self.position.next(), 0)
        if get_worker_info() is None:
            return self._state_at(place)
        return {**make_state(self, place.epoch, place.step, self.skipped), "given": place.given}

    def load_state_dict(self, state: dict[str, Any], override: bool = False) -> None:
        """Makes the next iteration go on where `state` was taken, with as many workers.

        A worker reads the samples since the beginning of its pass once more, without transforming them.

        Args:
            state: of `state_dict()`.
            override: takes a state of other data, another order or seed, too.

        Raises:
            FeedError: the state does not fit; the message says what differs.
        """
        epoch, step = find_place(self, state, override=override)
        self._loaded = Place(epoch, step, state.get("given", 0))
        self.skipped = [list(pair) for pair in state.get("skipped", [])]
        if get_worker_info() is None:
            self.position.set(epoch, step)
        self._pass = None

    def _state_at(self, place: Place) -> dict[str, Any]:
        return make_state(self, place.epoch, place.step + place.given, self.skipped)

    def __getstate__(self) -> dict[str, Any]:
        refuse_to_be_divided_again(self.reading.world)
        self.hold()  # so that it does not end before the other process is there
        return {**self.__dict__, "connections": copy.copy(self.connections), "_pass": None, "_place": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        watch_loaders(self)
        if os.getpid() == self._home_pid and get_worker_info() is None:  # copied, not handed to a worker
            self.position, self._loaded = Position(*self.position.next()), copy.copy(self._loaded)
            self.connections.become_another_reader()
            self.skipped, self.appointed, self._passes = list(self.skipped), None, 0

    def close(self) -> None:
        """Ends the connections. Used again, it finds the feed again, or starts it."""
        if self.waits.has_begun:
            self.tell_waits(is_last=True)
        self.connections.close()
