"""FeedDataset: samples of this rank, in the order that (seed, epoch) determines."""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .accelerate_guard import refuse_to_be_divided_again
from .batch import Batch, Sample
from .client import FeedClient
from .errors import FeedGone, pass_has_ended
from .launch import JobFeed
from .options import ReadOptions, rank_and_world, serve_options
from .position import Begun, Place, Position
from .state import find_place, make_state
from .torch_data import IterableDataset, get_worker_info


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
        # Batches that stay valid although later ones were asked for, or 'auto'; FeedLoader(ahead=...) sets it.
        self.keep: int | str = 0
        self.position = Position()
        self._feed = JobFeed(self.serving, own_world, timeout)
        self._reader = uuid.uuid4().hex  # tells this object's place from others' of the same rank
        self._home_pid = os.getpid()
        self._client: FeedClient | None = None
        self.holder: FeedClient | None = None  # a connection that keeps the feed from ending between passes
        self.appointed: Begun | None = None  # where FeedLoader wants this process's pass, or a new worker's first one
        self._passes = 0  # of this process
        self._pass: object = None
        self._place: Place | None = None  # of the pass that runs
        self._loaded: Place | None = None  # where the next pass goes on
        self._info: dict[str, Any] | None = None

    def connect(self, worker: int = 0, workers: int = 1) -> FeedClient:
        """Opens another connection, as one of a rank's workers."""
        hello = self.reading.hello(reader=self._reader, worker=worker, workers=workers, keep=self.keep)
        return self._feed.connect(hello)

    @property
    def info(self) -> dict[str, Any]:
        """The feed's description of the dataset: n, fingerprint, stepsPerEpoch, globalBatch, ..."""
        if self._info is None:
            self.hold()
        assert self._info is not None
        return self._info

    def expect_epoch(self, epoch: int) -> None:
        """Says where the next pass will begin, so that a feed started for it has that epoch's order ready."""
        self._feed.epoch = epoch

    def hold(self) -> None:
        """Starts the feed if need be, and keeps it from ending for want of readers as long as this object is used."""
        if self.holder is not None and self.holder.pid == os.getpid() and self.holder.is_alive():
            return
        self.holder = self.connect()
        self._info = self.holder.info

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
        client.request(client.info["depth"])
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
            self._reader = uuid.uuid4().hex
        self._pass = object()
        loaded, self._loaded = self._loaded, None
        epoch, step, run = self._next_place(number, None if loaded is None else (loaded.epoch, loaded.step))
        self.expect_epoch(epoch)
        client = self._own_client()
        try:
            client.start(epoch, step, run)
        except FeedGone:
            if not self._feed.can_be_started_again:
                raise
            self._client = None
            client = self._own_client()
            client.start(epoch, step, run)
        return client, Place(epoch, step, 0 if loaded is None else loaded.given)

    def _next_place(self, number: int, at: tuple[int, int] | None) -> Begun:
        appointed, self.appointed = self.appointed, None
        worker = get_worker_info()
        if worker is None:
            return appointed or self.position.begin(uuid.uuid4().hex, at=at)
        if appointed is not None and number == 1:
            return appointed
        return self.position.begin(f"{worker.seed - worker.id}:{number}", worker.id, number=number, at=at)

    def _own_client(self) -> FeedClient:
        """This process's connection; a forked copy of another process's is left alone."""
        worker = get_worker_info()
        if self._client is None or self._client.pid != os.getpid():
            self._client = self.connect(worker.id, worker.num_workers) if worker else self.connect()
            self._info = self._client.info
        return self._client

    def __iter__(self) -> Iterator[Any]:
        refuse_to_be_divided_again(self.reading.world)
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
        nothing = {"_client": None, "holder": None, "_pass": None, "_place": None}
        return {**self.__dict__, **nothing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if os.getpid() == self._home_pid and get_worker_info() is None:  # copied, not handed to a worker
            self.position, self._reader = Position(*self.position.next()), uuid.uuid4().hex
            self._feed, self._loaded = copy.copy(self._feed), copy.copy(self._loaded)
            self.skipped, self.appointed, self._passes = list(self.skipped), None, 0

    def close(self) -> None:
        """Ends the connections. Used again, it finds the feed again, or starts it."""
        for client in (self._client, self.holder):
            if client is not None and client.pid == os.getpid():
                client.close()
        self._client = self.holder = None
